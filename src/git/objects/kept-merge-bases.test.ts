import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Commit, GitRepository } from '../git-repository.ts';
import { keptMergeBases } from './kept-merge-bases.ts';

const { signal } = new AbortController();

/** Commits by name with their parents, the oldest first, and the names of those that were read. */
function repositoryOf(history: Readonly<Record<string, readonly string[]>>) {
  const read: string[] = [];
  const missing = new Set<string>();
  const readCommit = async (oid: string): Promise<Commit> => {
    read.push(oid);
    if (missing.has(oid)) throw new SluiceError('NotFound', `there is no ${oid}`);
    const committer = { name: 'a', email: 'a@example.com', time: 1000 * Object.keys(history).indexOf(oid) };
    const parents = history[oid] ?? [];
    return { oid, tree: '', parents, author: committer, committer, message: '', signature: undefined };
  };
  return { git: { readCommit } as Partial<GitRepository> as GitRepository, read, missing };
}

const CROSSED = { root: [], a: ['root'], b: ['root'], one: ['a', 'b'], other: ['b', 'a'] };

test('are all best ones, and are searched once, also by calls at the same time', async () => {
  const { git, read } = repositoryOf(CROSSED);
  const calls = [keptMergeBases(git, 'one', 'other', signal), keptMergeBases(git, 'one', 'other', signal)];
  for (const bases of await Promise.all(calls)) expect(bases.toSorted()).toEqual(['a', 'b']);
  const count = read.length;
  await keptMergeBases(git, 'one', 'other', signal);
  expect(read).toHaveLength(count);
  expect(await keptMergeBases(repositoryOf({ ...CROSSED, b: [] }).git, 'one', 'b', signal)).toEqual(['b']);
});

test('are found where the call that searched them was stopped', async () => {
  const { git } = repositoryOf(CROSSED);
  const stop = new AbortController();
  const stopped = keptMergeBases(git, 'one', 'other', stop.signal);
  const waiting = keptMergeBases(git, 'one', 'other', signal);
  stop.abort();
  await expect(stopped).rejects.toThrow();
  expect(await waiting).toHaveLength(2);
});

test('are searched again where a part of the history was missing', async () => {
  const { git, missing } = repositoryOf({ root: [], one: ['root'], other: ['root'] });
  missing.add('root');
  expect(await keptMergeBases(git, 'one', 'other', signal)).toEqual([]);
  missing.clear();
  expect(await keptMergeBases(git, 'one', 'other', signal)).toEqual(['root']);
});
