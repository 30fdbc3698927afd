/** What a `Forge` does with pull requests of Sluice itself, besides showing them. Its contract holds here too. */
export interface ForgeMerging {
  /**
   * Merges a pull request whose head is the given commit. Rejects with Conflict, with nothing merged, if its head is another commit. A
   * pull request that was merged at this head already is `merged`, so that a call whose outcome is unknown can be repeated. Where the base has a
   * merge queue the pull request is put there: `queued`.
   */
  merge(number: number, wanted: MergeRequest, signal: AbortSignal): Promise<MergeOutcome>;
  /**
   * Removes a pull request from the merge queue if this account has put it there, and says whether it did: `other` where another one has. A host
   * without queues has none there.
   */
  dequeue(number: number, signal: AbortSignal): Promise<'removed' | 'absent' | 'other'>;
  /** What the host states of a merge. Reading it is no attempt. */
  mergeability(number: number, signal: AbortSignal): Promise<Mergeability>;
  /** Rules of a branch, as far as the token may read them. Rejects with NotFound for a branch that does not exist. */
  branchRules(branch: string, signal: AbortSignal): Promise<BranchRules>;
  /** The methods by which pull requests may be merged into a branch; undefined where the host does not state that to this token. */
  mergeMethods(branch: string, signal: AbortSignal): Promise<readonly MergeMethod[] | undefined>;
}

/** Ended pull requests that a search by branches reads. */
export const MAX_ENDED = 1000;

export type MergeMethod = 'merge' | 'squash' | 'rebase';

export interface MergeRequest {
  readonly headCommit: string;
  readonly method: MergeMethod;
  /** Subject of the commit that the host makes; it makes none for a rebase. */
  readonly title: string;
  /** Its other lines. */
  readonly message: string;
}

/**
 * Why a host does not merge: the branches conflict; the head has to contain the base first; checks, reviews or rules are missing (the message
 * of the host says which); it is a draft; the method is not permitted; it was closed; or the host has not found out yet, so that the request is
 * repeated.
 */
export type MergeObstacle = 'conflict' | 'behind' | 'blocked' | 'draft' | 'method' | 'closed' | 'unknown';

export type MergeOutcome =
  /** `commit` is the one on the base; undefined where the host does not report it yet. */
  | { readonly state: 'merged'; readonly commit: string | undefined }
  | { readonly state: 'queued' }
  /** The message is that of the host. */
  | { readonly state: 'refused'; readonly obstacle: MergeObstacle; readonly message: string };

/** `mergeable` says only that the host states no obstacle: it may still refuse the merge. */
export type Mergeability = 'mergeable' | 'conflict' | 'behind' | 'blocked' | 'draft' | 'queued' | 'unknown';

/** Undefined where the host does not state it: what classic protection of a branch on GitHub requires is open to administrators only. */
export interface BranchRules {
  /** A head has to contain the branch before it is merged. */
  readonly requiresUpToDate?: boolean;
}
