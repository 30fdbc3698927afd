import type { Commit, GitRepository, Oid } from '../git-repository.ts';
import { readIfThere } from './merge-base.ts';

/** Commits that are read on both sides together. */
const MAX_COMMITS = 5000;

/** Differences of clocks that are looked for. */
const MAX_SKEW_MS = 86_400_000;

const ONE = 1;
const OTHER = 2;
const BOTH = ONE | OTHER;
/** An ancestor of a common one. */
const STALE = 4;

/** The commits that were found by a walk from two of them, with the sides that each was reached from. */
interface Walked {
  readonly sideOf: (oid: Oid) => number;
  readonly reached: Iterable<Oid>;
  readonly common: ReadonlySet<Oid>;
}

/**
 * All best common ancestors of two commits: several where each side had merged the other one before. Empty where there is none; undefined where the
 * search was not complete within `MAX_COMMITS` commits. `mergeBase` finds one of them, and less of the history then. Where clocks differ by more than a
 * day, one of them can be contained in another one.
 */
export async function mergeBases(
  git: Pick<GitRepository, 'readCommit'>,
  one: Oid,
  other: Oid,
  signal?: AbortSignal,
): Promise<readonly Oid[] | undefined> {
  if (one === other) return [one];
  const walked = await walk(git, one, other, signal);
  if (walked === undefined) return undefined;
  const { sideOf, common } = walked;
  const best = [...common].filter((oid) => sideOf(oid) === BOTH);
  if (best.length < 2) return best;
  // Where clocks differ, one can be found before another one that contains it.
  const contained = new Set<Oid>();
  const times: number[] = [];
  for (const oid of best) times.push((await git.readCommit(oid)).committer.time);
  const since = Math.min(...times) - MAX_SKEW_MS;
  for (const oid of best) {
    const history = new Set([oid]);
    for (const one of history) {
      const commit = history.size > MAX_COMMITS ? undefined : await readIfThere(git, one);
      if (commit === undefined || commit.committer.time < since) continue;
      for (const parent of commit.parents) history.add(parent);
    }
    for (const other of best) if (other !== oid && history.has(other)) contained.add(other);
  }
  return best.filter((oid) => !contained.has(oid));
}

/**
 * The commits of a history that another one does not have; undefined where the search was not complete within `MAX_COMMITS` commits. Where clocks
 * differ, some that the other one has can be among them.
 */
export async function commitsBeyond(
  git: Pick<GitRepository, 'readCommit'>,
  head: Oid,
  other: Oid,
  signal?: AbortSignal,
): Promise<ReadonlySet<Oid> | undefined> {
  if (head === other) return new Set();
  const walked = await walk(git, head, other, signal);
  return walked && new Set([...walked.reached].filter((oid) => walked.sideOf(oid) === ONE));
}

/** Undefined where it was not complete within `MAX_COMMITS` commits. */
async function walk(
  git: Pick<GitRepository, 'readCommit'>,
  one: Oid,
  other: Oid,
  signal: AbortSignal | undefined,
): Promise<Walked | undefined> {
  const sides = new Map<Oid, number>([
    [one, ONE],
    [other, OTHER],
  ]);
  const waiting = new Map<Oid, Commit>();
  const common = new Set<Oid>();
  const sideOf = (oid: Oid) => sides.get(oid) ?? 0;
  await add(one);
  await add(other);
  for (let count = 0; [...waiting.keys()].some((oid) => (sideOf(oid) & STALE) === 0); count += 1) {
    signal?.throwIfAborted();
    if (count >= MAX_COMMITS) return undefined;
    const commit = next();
    if (commit === undefined) break;
    waiting.delete(commit.oid);
    const side = sideOf(commit.oid);
    if (side === BOTH) common.add(commit.oid);
    const reached = (side & BOTH) === BOTH ? BOTH | STALE : side;
    for (const oid of commit.parents) {
      const before = sideOf(oid);
      if ((before | reached) === before) continue;
      sides.set(oid, before | reached);
      await add(oid);
    }
  }
  return { sideOf, reached: sides.keys(), common };

  /** Of the same time, those of both sides catch up with the ones of one side, which would run ahead of them to the first commit. */
  function next(): Commit | undefined {
    let newest: Commit | undefined;
    const isOfBoth = ({ oid }: Commit) => (sideOf(oid) & BOTH) === BOTH;
    for (const commit of waiting.values()) {
      const laterMs = commit.committer.time - (newest?.committer.time ?? Number.NEGATIVE_INFINITY);
      if (newest === undefined || laterMs > 0 || (laterMs === 0 && isOfBoth(commit) && !isOfBoth(newest)))
        newest = commit;
    }
    return newest;
  }

  async function add(oid: Oid): Promise<void> {
    if (waiting.has(oid)) return;
    const commit = await readIfThere(git, oid);
    if (commit !== undefined) waiting.set(oid, commit);
  }
}
