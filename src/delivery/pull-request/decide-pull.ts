/** What was read of the branch and the pull request of a target, before one step. */
export interface PullFacts {
  /** The branch of the target lacks something. */
  readonly isPending: boolean;
  /** The branch of the pull request. */
  readonly branch?: {
    readonly head: string;
    /** Its head is a commit of Sluice. */
    readonly isOwn: boolean;
    /** A merge of its head delivers what is desired now, and nothing else. */
    readonly isCurrent: boolean;
    /** Its head contains the head of the branch of the target. */
    readonly isUpToDate: boolean;
  };
  /** The open pull request, else the last one. */
  readonly pull?: {
    readonly state: 'open' | 'merged' | 'closed';
    readonly head: string;
    /** Users closed it with what is desired now. */
    readonly isRejected: boolean;
    /** It was the host that closed it, for the removal of a branch, and Sluice has not opened it again at this head. */
    readonly mayReopen?: boolean;
  };
  /** Of an open pull request. */
  readonly mergeability?: 'mergeable' | 'conflict' | 'behind' | 'blocked' | 'draft' | 'queued' | 'unknown';
  /** The host has not said for a while whether it can be merged, or there is a conflict that it does not report. */
  readonly isUnknownForLong?: boolean;
  readonly merge: 'automatic' | 'manual';
}

/** The next step, or why there is none. */
export type PullStep =
  | { readonly do: 'nothing' }
  /** Closes the pull request: nothing is desired any more. */
  | { readonly do: 'close' }
  | { readonly do: 'remove-branch' }
  /** Sets the branch to one commit on top of the branch of the target. */
  | { readonly do: 'push' }
  | { readonly do: 'open' }
  /** Opens again what the host closed for an earlier branch of the same name. */
  | { readonly do: 'reopen' }
  | { readonly do: 'merge' }
  | { readonly do: 'wait'; readonly for: PullWait };

/** `merge`: for users or the host. `queue`: for the merge queue. `reopen`: users closed it. `branch`: users changed its branch. */
export type PullWait = 'merge' | 'queue' | 'reopen' | 'branch';

/**
 * Decides the next step of a delivery by a pull request. Each step is safe to repeat, and after each one everything is read again, so that a
 * crash between two of them neither loses nor doubles anything.
 */
export function decidePull({
  isPending,
  branch,
  pull,
  mergeability,
  isUnknownForLong = false,
  merge,
}: PullFacts): PullStep {
  const open = pull?.state === 'open' ? pull : undefined;
  // What users pushed has ended with the pull request.
  const isReleased = branch !== undefined && open === undefined && pull?.head === branch.head;
  const isFree = branch === undefined || branch.isOwn || isReleased;
  if (!isPending) {
    if (open !== undefined) return { do: 'close' };
    return branch !== undefined && isFree ? { do: 'remove-branch' } : { do: 'nothing' };
  }
  if (open !== undefined && mergeability === 'queued') return { do: 'wait', for: 'queue' };
  if (open === undefined && pull?.isRejected === true) {
    const isAsProposed = branch?.isCurrent === true && branch.head === pull.head;
    return pull.mayReopen === true && isAsProposed ? { do: 'reopen' } : { do: 'wait', for: 'reopen' };
  }
  if (!isFree) return { do: 'wait', for: 'branch' };
  if (branch === undefined || !branch.isCurrent) return { do: 'push' };
  if (open === undefined) return { do: 'open' };
  const isStuck = mergeability === 'conflict' || mergeability === 'behind' || isUnknownForLong;
  if (isStuck && !branch.isUpToDate) return { do: 'push' };
  return merge === 'automatic' ? { do: 'merge' } : { do: 'wait', for: 'merge' };
}
