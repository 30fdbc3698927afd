import { LruCache } from '../../foundation/lru-cache.ts';
import type { GitRepository, Oid } from '../git-repository.ts';
import { mergeBase } from './merge-base.ts';
import { mergeBases } from './merge-bases.ts';

/** Pairs of commits, for each open repository. */
const MAX_PAIRS = 1000;

interface Found {
  readonly bases: readonly Oid[];
  /** Whether all commits that were looked for are there. */
  readonly isWhole: boolean;
}

type Commits = Pick<GitRepository, 'readCommit'>;

const kept = new WeakMap<Commits, LruCache<string, Promise<Found>>>();

/**
 * The newest common ancestor of two commits, as `mergeBase` finds it, and the other best ones; empty where there is none. Commits do not change, so
 * that the result is kept while the repository is open, unless the history is cut off, which a fetch can change.
 */
export async function keptMergeBases(git: Commits, one: Oid, other: Oid, signal: AbortSignal): Promise<readonly Oid[]> {
  const pairs = kept.get(git) ?? new LruCache<string, Promise<Found>>({ maxEntries: MAX_PAIRS });
  kept.set(git, pairs);
  const key = `${one} ${other}`;
  // A search fails where its own caller stops: then this one searches itself.
  const found = await pairs.get(key)?.catch(() => undefined);
  signal.throwIfAborted();
  if (found !== undefined) return found.bases;
  const search = findBases(git, one, other, signal);
  pairs.set(key, search);
  let isKept = false;
  try {
    const { bases, isWhole } = await search;
    isKept = isWhole;
    return bases;
  } finally {
    if (!isKept && pairs.peek(key) === search) pairs.delete(key);
  }
}

async function findBases(git: Commits, one: Oid, other: Oid, signal: AbortSignal): Promise<Found> {
  let isWhole = true;
  const commits: Commits = {
    readCommit: async (oid) => {
      try {
        return await git.readCommit(oid);
      } catch (error) {
        isWhole = false;
        throw error;
      }
    },
  };
  const newest = await mergeBase(commits, one, other, signal);
  if (newest === undefined) return { bases: [], isWhole };
  const all = (await mergeBases(commits, one, other, signal)) ?? [];
  return { bases: [...new Set([newest, ...all])], isWhole };
}
