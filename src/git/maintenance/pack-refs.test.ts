import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { git, initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { CatFile } from '../engines/native/cat-file.ts';
import { NativeSource } from '../engines/native/native-source.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { RefFiles } from '../refs/ref-files.ts';
import { packRefs } from './pack-refs.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let source: NativeSource;

beforeEach(() => {
  folder = temporaryFolder();
  path = initBare(join(folder.path, 'tags.git'));
  const catFile = new CatFile({ gitDir: path, clock: systemClock, timeout: 60_000, idleTimeout: 60_000 });
  source = new NativeSource(path, catFile, false);
});

afterEach(() => {
  source.close();
  folder.remove();
});

test('annotated tags that are loose objects, and tags of tags, are packed with what they point to', async () => {
  const commit = git(path, ['commit-tree', EMPTY_TREE, '-m', 'x']);
  git(path, ['tag', '-a', 'v1', '-m', 'x', commit]);
  git(path, ['tag', '-a', 'nested', '-m', 'x', 'v1']);
  git(path, ['tag', 'light', commit]);
  const before = git(path, ['ls-remote', '--tags', '.']);
  await packRefs(new RefFiles(path), source);
  expect(
    readFileSync(join(path, 'packed-refs'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('^')),
  ).toEqual([`^${commit}`, `^${commit}`]);
  expect(git(path, ['ls-remote', '--tags', '.'])).toBe(before);
});

test('git reads what is neither an object id nor a path in one', async () => {
  const commit = git(path, ['commit-tree', EMPTY_TREE, '-m', 'x']);
  git(path, ['tag', '-a', 'v1', '-m', 'x', commit]);
  const tag = git(path, ['rev-parse', 'v1']);
  expect(await source.statObjects([`${tag}^{}`])).toMatchObject([{ oid: commit, type: 'commit' }]);
});
