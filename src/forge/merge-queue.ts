/** The merge queue of a host that has one: it merges only commits of its own, whose checks have succeeded. The contract of `Forge` holds here too. */
export interface MergeQueue {
  /**
   * The merges to a branch that wait for checks, at most a page of the host; none where the branch has no queue. Only what the host itself states: no
   * user can put a commit among them, and none of them is the head of an open pull request, which has checks of its own.
   */
  waiting(base: string, signal: AbortSignal): Promise<QueuedMerges>;
  /** The id of the tree of a folder in a commit, which need not have been fetched; undefined if there is none. */
  treeOf(commit: string, path: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface QueuedMerges {
  readonly merges: readonly QueuedMerge[];
  /** False while the host has not made, or not shown, the commit of what is in the queue: a later call has more. */
  readonly isComplete: boolean;
}

export interface QueuedMerge {
  /** The last pull request that the commit merges: those before it in the queue are merged by it too. */
  readonly number: number;
  /** What the host would merge, and the branch that it has made for it. */
  readonly commit: string;
  readonly branch: string;
}
