import fs, { appendFileSync, existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { type RefusalNote, type RefusalReason, StoredRefusals } from './stored-refusals.ts';

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

function spyOn<T extends 'readFileSync' | 'openSync' | 'renameSync' | 'rmSync' | 'appendFileSync'>(
  ...names: readonly T[]
) {
  const spies = names.map((name) => vi.spyOn(fs, name));
  syncBuiltinESMExports();
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
    syncBuiltinESMExports();
  });
  return spies;
}

test.each(['a file', 'memory'])('a note of a merge queue stays, however many others there are (%s)', (place) => {
  let current: string | undefined;
  const isCurrent = ({ revision }: RefusalNote) => current === undefined || revision === current;
  const notes = new StoredRefusals(place === 'memory' ? undefined : file, isCurrent);
  for (const name of ['first', 'second']) notes.add(note('MergeQueued', name));
  for (let count = 0; count < 150; count += 1) notes.add(note('NotMerged', `p${count}`));
  for (let count = 0; count < 150; count += 1) notes.add(note('MergeQueued', `q${count}`));
  expect(notes.of('first')).toEqual([note('MergeQueued', 'first')]);
  expect(notes.of('p49')).toEqual([]);
  expect(notes.of('p50')).toEqual([note('NotMerged', 'p50')]);
  // What does not count any more is not kept for long, since no number bounds it.
  current = 'second';
  for (let count = 0; count < 500; count += 1) notes.add(note('MergeQueued', `r${count}`));
  expect(notes.of('second')).toEqual([note('MergeQueued', 'second')]);
  expect(notes.of('first')).toEqual([]);
  expect(notes.list().length).toBeLessThan(350);
});

test('what another process writes is read, and nothing else is read twice', () => {
  const [one, other] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
  one.add(note('PushRefused', 'a'));
  other.add(note('NotMerged', 'a'));
  expect(one.of('a')).toEqual([note('PushRefused', 'a'), note('NotMerged', 'a')]);
  const [read] = spyOn('readFileSync');
  for (let count = 0; count < 100; count += 1) one.remove({ revision: `b${count}`, reason: 'NotMerged' });
  one.add(note('PushRefused', 'b'));
  one.remove({ revision: 'a', reason: 'PushRefused' });
  expect(read).not.toHaveBeenCalled();
  expect(other.list()).toEqual([note('NotMerged', 'a'), note('PushRefused', 'b')]);
  expect(read).toHaveBeenCalledTimes(1);
  other.remove({ revision: 'a', reason: 'NotMerged' });
  other.remove({ revision: 'b', reason: 'PushRefused' });
  expect(existsSync(file)).toBe(false);
  expect(one.list()).toEqual([]);
});

test('the cost of a note does not depend on the number of others', () => {
  const isCurrent = vi.fn(all);
  const notes = new StoredRefusals(file, isCurrent);
  const [rename] = spyOn('renameSync');
  const count = 2000;
  const queued = Array.from({ length: count }, (_, index) => note('MergeQueued', `q${index}`));
  for (const one of queued) notes.add(one);
  expect(new StoredRefusals(file, all).list()).toEqual(queued);
  for (const { revision, reason } of queued.slice(1)) notes.remove({ revision, reason });
  expect(new StoredRefusals(file, all).list()).toEqual(queued.slice(0, 1));
  expect(rename?.mock.calls.length).toBeLessThan(20);
  expect(isCurrent.mock.calls.length).toBeLessThan(4 * count);
});

test('a change beside that of another process is not lost', () => {
  const [one, other] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
  for (const name of ['a', 'b']) one.add(note('MergeQueued', name));
  const append = fs.appendFileSync;
  const [spy] = spyOn('appendFileSync');
  // The other process writes after this one has looked at the file.
  spy?.mockImplementationOnce((...of) => {
    append(file, `\n${JSON.stringify(note('NotMerged', 'c'))}`);
    append(...of);
  });
  one.remove({ revision: 'a', reason: 'MergeQueued' });
  const left = [note('MergeQueued', 'b'), note('NotMerged', 'c')];
  expect(one.list()).toEqual(left);
  expect(other.list()).toEqual(left);
});

test('half a line is ignored, and so is what is no note', () => {
  const notes = new StoredRefusals(file, all);
  notes.add(note('MergeQueued', 'b'));
  appendFileSync(file, '\n{"revision":"d"}\n{"revision":"d"');
  notes.add(note('NotMerged', 'c'));
  const after = new StoredRefusals(file, all);
  expect(after.list()).toEqual([note('MergeQueued', 'b'), note('NotMerged', 'c')]);
  after.remove({ revision: 'c', reason: 'NotMerged' });
  expect(notes.list()).toEqual([note('MergeQueued', 'b')]);
});

/** Has the file rewritten by the next change. */
function fill(): void {
  const { message: _, commit: __, ...about } = note('NotMerged', 'x');
  appendFileSync(file, `\n${JSON.stringify({ ...about, ended: true })}`.repeat(200));
}

test.each(['replaces', 'removes'])('what another process notes while this one %s the file is not lost', (how) => {
  const [server, command] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
  server.add(note('TeamNotRead', 'x'));
  fill();
  const { renameSync, rmSync } = fs;
  const spies = spyOn('renameSync', 'rmSync');
  let times = 0;
  const noting =
    <Values extends unknown[]>(call: (...values: Values) => void) =>
    (...values: Values) => {
      times += 1;
      if (times === 1) server.add(note('MergeQueued', 'before'));
      call(...values);
      if (times === 1) appendFileSync(file, `\n${JSON.stringify(note('MergeQueued', 'after'))}`);
    };
  spies[0]?.mockImplementation(noting(renameSync));
  spies[1]?.mockImplementation(noting(rmSync));
  if (how === 'replaces') command.add(note('PushRefused', 'y'));
  else command.remove({ revision: 'x', reason: 'TeamNotRead' });
  expect(times).toBeGreaterThan(0);
  for (const notes of [server, command, new StoredRefusals(file, all)])
    expect(notes.of('before').concat(notes.of('after'))).toHaveLength(2);
});

test('a note that a process adds to a file which another one has just replaced is not lost', () => {
  const [server, command] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
  server.add(note('TeamNotRead', 'x'));
  fill();
  const append = fs.appendFileSync;
  const [spy] = spyOn('appendFileSync');
  // The command has opened the file, and writes after the server has rewritten it.
  spy?.mockImplementationOnce((...of) => {
    server.add(note('PushRefused', 'y'));
    append(...of);
  });
  command.add(note('MergeQueued', 'queued'));
  for (const notes of [server, command]) expect(notes.of('queued')).toHaveLength(1);
});

test('one process rewrites the file at a time, and what a killed one left does not matter', () => {
  const notes = new StoredRefusals(file, all);
  writeFileSync(`${file}.new`, 'x');
  notes.add(note('PushRefused', 'y'));
  fill();
  notes.add(note('PushRefused', 'z'));
  const long = readFileSync(file, 'utf8').length;
  expect(new StoredRefusals(file, all).list()).toEqual([note('PushRefused', 'y'), note('PushRefused', 'z')]);
  utimesSync(`${file}.new`, 0, 0);
  notes.remove({ revision: 'z', reason: 'PushRefused' });
  expect(readFileSync(file, 'utf8').length).toBeLessThan(long);
  expect(existsSync(`${file}.new`)).toBe(false);
  expect(new StoredRefusals(file, all).list()).toEqual([note('PushRefused', 'y')]);
});

/** Does something once a file was opened with certain flags for the first time. */
function onceOpened(flags: string, then: () => void): void {
  const open = fs.openSync;
  const [spy] = spyOn('openSync');
  let times = 0;
  spy?.mockImplementation((...of) => {
    const descriptor = open(...of);
    if (of[1] === flags) times += 1;
    if (of[1] === flags && times === 1) then();
    return descriptor;
  });
}

test.each(['replaces', 'removes'])(
  'a process that stood still for long while it %s the file changes nothing',
  (how) => {
    const [late, other] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
    late.add(note('TeamNotRead', 'x'));
    fill();
    onceOpened('wx', () => {
      utimesSync(`${file}.new`, 0, 0);
      other.add(note('MergeQueued', 'queued'));
      // Of yet another one.
      writeFileSync(`${file}.new`, 'x');
    });
    if (how === 'replaces') late.add(note('PushRefused', 'y'));
    else late.remove({ revision: 'x', reason: 'TeamNotRead' });
    expect(readFileSync(`${file}.new`, 'utf8')).toBe('x');
    for (const notes of [late, other, new StoredRefusals(file, all)])
      expect(notes.list().map(({ revision }) => revision)).toEqual(
        how === 'replaces' ? ['queued', 'x', 'y'] : ['queued'],
      );
  },
);

test('what another process notes while this one writes is in the file that it places', () => {
  const [one, other] = [new StoredRefusals(file, all), new StoredRefusals(file, all)];
  one.add(note('TeamNotRead', 'x'));
  fill();
  onceOpened('r', () => other.add(note('MergeQueued', 'ä')));
  const rename = fs.renameSync;
  const [renaming] = spyOn('renameSync');
  renaming?.mockImplementationOnce((...of) => {
    rename(...of);
    throw new Error('killed');
  });
  expect(() => one.remove({ revision: 'x', reason: 'TeamNotRead' })).toThrow('killed');
  for (const notes of [one, other, new StoredRefusals(file, all)])
    expect(notes.list()).toEqual([note('MergeQueued', 'ä')]);
});

test('a damaged file is replaced by the next note', () => {
  const notes = new StoredRefusals(file, all);
  notes.add(note('PushRefused', 'a'));
  writeFileSync(file, '[{');
  expect(notes.list()).toEqual([]);
  notes.add(note('PushRefused', 'b'));
  expect(new StoredRefusals(file, all).list()).toEqual([note('PushRefused', 'b')]);
});
