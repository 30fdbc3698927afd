import fs, { existsSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { type RefusalNote, type RefusalReason, RefusedPushes } from './refused-pushes.ts';

let file: string;
beforeEach(() => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  file = join(folder.path, 'notes.json');
});

function note(reason: RefusalReason, revision: string, message = 'the host requires a check'): RefusalNote {
  return { revision, commit: 'a'.repeat(40), message, reason };
}

const all = () => true;

test.each(['a file', 'memory'])('a note of a merge queue stays, however many others there are (%s)', (place) => {
  const notes = new RefusedPushes(place === 'memory' ? undefined : file);
  for (const name of ['first', 'second']) notes.add(note('MergeQueued', name), all);
  for (let count = 0; count < 150; count += 1) notes.add(note('NotMerged', `p${count}`), all);
  for (let count = 0; count < 150; count += 1) notes.add(note('MergeQueued', `q${count}`), all);
  expect(notes.of('first')).toEqual([note('MergeQueued', 'first')]);
  expect(notes.of('p49')).toEqual([]);
  expect(notes.of('p50')).toEqual([note('NotMerged', 'p50')]);
  // What does not count any more is not kept, since no number bounds it.
  notes.add(note('MergeQueued', 'second', 'in another one'), ({ revision }) => revision === 'second');
  expect(notes.list().filter(({ reason }) => reason === 'MergeQueued')).toHaveLength(1);
  expect(notes.list()).toHaveLength(101);
});

test('what another process writes is read, and nothing else is read twice', () => {
  const [one, other] = [new RefusedPushes(file), new RefusedPushes(file)];
  one.add(note('PushRefused', 'a'), all);
  other.add(note('NotMerged', 'a'), all);
  expect(one.of('a')).toEqual([note('PushRefused', 'a'), note('NotMerged', 'a')]);
  const read = vi.spyOn(fs, 'readFileSync');
  syncBuiltinESMExports();
  onTestFinished(() => {
    read.mockRestore();
    syncBuiltinESMExports();
  });
  for (let count = 0; count < 100; count += 1) one.remove({ revision: `b${count}`, reason: 'NotMerged' });
  one.add(note('PushRefused', 'b'), all);
  one.remove({ revision: 'a', reason: 'PushRefused' });
  expect(read).not.toHaveBeenCalled();
  expect(other.list()).toEqual([note('NotMerged', 'a'), note('PushRefused', 'b')]);
  expect(read).toHaveBeenCalledTimes(1);
  other.remove({ revision: 'a', reason: 'NotMerged' });
  other.remove({ revision: 'b', reason: 'PushRefused' });
  expect(existsSync(file)).toBe(false);
  expect(one.list()).toEqual([]);
});

test('a damaged file is replaced by the next note', () => {
  const notes = new RefusedPushes(file);
  notes.add(note('PushRefused', 'a'), all);
  writeFileSync(file, '[{');
  expect(notes.list()).toEqual([]);
  notes.add(note('PushRefused', 'b'), all);
  expect(new RefusedPushes(file).list()).toEqual([note('PushRefused', 'b')]);
});
