import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Commit, GitRepository, Oid } from '../git-repository.ts';

/** Commits that are read on both sides together. */
const MAX_COMMITS = 5000;

const ONE = 1;
const OTHER = 2;
const BOTH = ONE | OTHER;
/** An ancestor of a common one. */
const STALE = 4;

/**
 * The newest common ancestor of two commits, by the times of commits as Git walks them; undefined if there is none within `MAX_COMMITS` commits,
 * or where the history is cut off. Of the common ones that are found at once, because clocks differ or times are equal, it is none that another one
 * contains.
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
  const common: Commit[] = [];
  const isBest = ({ oid }: Commit) => sides.get(oid) === BOTH;
  const isStale = ({ oid }: Commit) => ((sides.get(oid) ?? 0) & STALE) !== 0;
  /** Ancestors of common ones decide only between several of those. */
  const mayDecide = (commit: Commit) => !isStale(commit) || common.filter(isBest).length > 1;
  const mayBeBetter = (commit: Commit) =>
    isBest(commit) || (mayDecide(commit) && common.some(({ committer: { time } }) => time <= commit.committer.time));
  const isOfBoth = ({ oid }: Commit) => ((sides.get(oid) ?? 0) & BOTH) === BOTH;
  /** Of the same time, those of both sides catch up with the ones of one side, which would run ahead of them to the first commit. */
  const isNext = (commit: Commit, best: Commit | undefined) => {
    const laterMs = commit.committer.time - (best?.committer.time ?? 0);
    return laterMs > 0 || (laterMs === 0 && best !== undefined && isOfBoth(commit) && !isOfBoth(best));
  };
  for (const oid of [one, other]) {
    const commit = await readIfThere(git, oid);
    if (commit !== undefined) waiting.push(commit);
  }
  for (let count = 0; waiting.length > 0 && count < MAX_COMMITS; count += 1) {
    signal?.throwIfAborted();
    if (common.length > 0 && !waiting.some(mayBeBetter)) break;
    const newest = waiting.reduce((best, commit, at) => (isNext(commit, waiting[best]) ? at : best), 0);
    const [commit] = waiting.splice(newest, 1);
    if (commit === undefined) break;
    const side = sides.get(commit.oid) ?? 0;
    if (side === BOTH) common.push(commit);
    const reached = (side & BOTH) === BOTH ? BOTH | STALE : side;
    for (const oid of commit.parents) {
      const before = sides.get(oid) ?? 0;
      if ((before | reached) === before) continue;
      sides.set(oid, before | reached);
      // One that was read already, since clocks differ, is read again with both sides.
      if (waiting.some((one) => one.oid === oid)) continue;
      const parent = await readIfThere(git, oid);
      if (parent !== undefined) waiting.push(parent);
    }
  }
  return common.find(isBest)?.oid;
}

/** Undefined where the history is cut off. */
export async function readIfThere(git: Pick<GitRepository, 'readCommit'>, oid: Oid): Promise<Commit | undefined> {
  try {
    return await git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
