import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Commit, GitRepository, Oid } from '../git-repository.ts';

/** Commits that are read on both sides together. */
const MAX_COMMITS = 5000;

const ONE = 1;
const OTHER = 2;
const BOTH = ONE | OTHER;

/**
 * The newest common ancestor of two commits, by the times of commits as Git walks them; undefined if there is none within `MAX_COMMITS` commits,
 * or where the history is cut off.
 */
export async function mergeBase(
  git: Pick<GitRepository, 'readCommit'>,
  one: Oid,
  other: Oid,
  signal?: AbortSignal,
): Promise<Oid | undefined> {
  if (one === other) return one;
  const sides = new Map<Oid, number>([
    [one, ONE],
    [other, OTHER],
  ]);
  const waiting: Commit[] = [];
  for (const oid of [one, other]) {
    const commit = await read(git, oid);
    if (commit !== undefined) waiting.push(commit);
  }
  for (let count = 0; waiting.length > 0 && count < MAX_COMMITS; count += 1) {
    signal?.throwIfAborted();
    const newest = waiting.reduce(
      (best, { committer }, at) => (committer.time > (waiting[best]?.committer.time ?? 0) ? at : best),
      0,
    );
    const [commit] = waiting.splice(newest, 1);
    if (commit === undefined) break;
    const side = sides.get(commit.oid) ?? 0;
    if (side === BOTH) return commit.oid;
    for (const oid of commit.parents) {
      const before = sides.get(oid) ?? 0;
      if ((before | side) === before) continue;
      sides.set(oid, before | side);
      // One that was read already, since clocks differ, is read again with both sides.
      if (waiting.some((one) => one.oid === oid)) continue;
      const parent = await read(git, oid);
      if (parent !== undefined) waiting.push(parent);
    }
  }
  return undefined;
}

async function read(git: Pick<GitRepository, 'readCommit'>, oid: Oid): Promise<Commit | undefined> {
  try {
    return await git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
