import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fsck, GIT_ENVIRONMENT, git, initBare, refsOf, temporaryFolder } from './git-cli.ts';
import { bareWithCommit, writeCommit, writeObject, writeRef, writeTree } from './write-objects.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

test('a repository is as git makes it', () => {
  const [own, other] = [join(folder.path, 'own.git'), join(folder.path, 'other.git')];
  initBare(own);
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', '--template=', other], {
    env: GIT_ENVIRONMENT,
  });
  const contents = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true }).map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return [file.slice(path.length), entry.isFile() ? readFileSync(file, 'utf8') : undefined];
    });
  expect(contents(own).sort()).toEqual(contents(other).sort());
});

test('objects and refs are as git writes them', () => {
  const path = bareWithCommit(join(folder.path, 'r.git'), { 'b.txt': 'b', 'a.txt': 'a' });
  const oid = writeObject(path, 'blob', 'text');
  const entries = new Map([
    ['a-file', { mode: '100755', oid } as const],
    ['a', { mode: '040000', oid: writeTree(path, new Map([['deep', { mode: '100644', oid }]])) } as const],
  ]);
  const tree = writeTree(path, entries);
  const main = git(path, ['rev-parse', 'main']);
  const commit = writeCommit(path, { tree, parents: [main], message: 'second\n' });
  writeRef(path, 'refs/heads/team/next', commit);
  fsck(path);
  expect(git(path, ['hash-object', '--stdin'], 'text')).toBe(oid);
  expect(git(path, ['mktree'], git(path, ['ls-tree', tree]))).toBe(tree);
  expect(git(path, ['commit-tree', tree, '-p', main, '-m', 'second'])).toBe(commit);
  expect(git(path, ['ls-tree', '--name-only', 'main'])).toBe('a.txt\nb.txt');
  expect([...refsOf(path).keys()]).toEqual(['refs/heads/main', 'refs/heads/team/next']);
});
