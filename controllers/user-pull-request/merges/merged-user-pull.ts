import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

const LONG_AGO_MS = 3_600_000;
/** What was merged longer ago is not reported: an earlier process has done it, or the users know it. */
export const MAX_UNREPORTED_MS = 7 * 86_400_000;

/** For so long a merge that cannot be published holds up later ones, in milliseconds. */
export const MAX_HELD_MS = 600_000;

/** A merged pull request whose packages wait to be published. */
export interface MergedUserPull {
  /** As a list returned it last. */
  pull: PullRequest;
  /** It was merged before this process read the host for the first time, or long before its last change. */
  readonly isMissed: boolean;
  attempts: number;
  /** Where the main branch was when the head was checked last that was merged; undefined if this process has not checked it. */
  readonly checkedOnto?: Oid | undefined;
  /** Since when it waits for its commit on the main branch, or for that of an earlier one; in milliseconds of running time. */
  waitsSince?: number;
  /** When its commit was found on the main branch, in milliseconds of running time. */
  foundMs?: number;
  /** When a sync for it was last requested, in milliseconds of running time. */
  syncedAt?: number;
  /** The last attempt has found that the host does not have it any more. */
  isGone?: boolean;
  /**
   * For how long it and earlier ones have failed, while the host could be read: from `MAX_HELD_MS` on it holds up no later ones. `lastMs`: when its own
   * last attempt failed; both in milliseconds of running time.
   */
  failing?: { readonly heldMs: number; readonly lastMs?: number };
  /** What an event has reported last: that its commit does not arrive, or that it fails. */
  reported?: 'missing' | 'failing';
}

/** The time of the last merge that was published; milliseconds since the epoch. */
export function lastMergeMs({ index }: Pick<PackageRepository, 'index'>): number {
  let last = Number.NEGATIVE_INFINITY;
  for (const { key, revision, tip } of index.all())
    if (revision > 0 && key.workspace.startsWith('merge-') && tip.time > last) last = tip.time;
  return last;
}

/** Whether what changed last came long after the merge: it is no news. */
export function isLongAgo({ closedAt, updatedAt }: PullRequest): boolean {
  return closedAt !== undefined && Date.parse(updatedAt) - Date.parse(closedAt) > LONG_AGO_MS;
}

/** `since`: RFC 3339; undefined if merges publish nothing. */
export function isMergedSince({ state, closedAt, updatedAt }: PullRequest, since: string | undefined): boolean {
  return state === 'merged' && since !== undefined && Date.parse(closedAt ?? updatedAt) >= Date.parse(since);
}
