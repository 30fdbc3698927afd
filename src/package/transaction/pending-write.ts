import type { Oid } from '../../git/git-repository.ts';
import type { RequestGroup } from '../../resource/object/request-group.ts';
import type { WritePlan } from '../plan/ports/repository-context.ts';
import type { DecidedStep } from '../plan/step-objects.ts';

/** A write that may share a commit on the main branch. */
export interface SharedWrite {
  /** What has the same group shares one commit. */
  readonly group: RequestGroup;
  /** Decides at a head of the main branch; throws if it is refused. */
  decide(mainHead: Oid | undefined): Promise<DecidedStep>;
  /** Plans decided steps of the group, in order; see `planTogether`. */
  plan(steps: readonly DecidedStep[]): Promise<readonly WritePlan[]>;
}

/** A write that waits for its turn to go out. No two of one revision wait at a time, which the caller ensures. */
export interface PendingWrite {
  /** The package that it is about. */
  readonly package: string;
  /**
   * It creates or removes a revision that affects the evaluation of others of the package, so that no other write of the package is in
   * the same batch.
   */
  readonly wholePackage: boolean;
  /** A lifecycle step: it may pass creations and edits. */
  readonly urgent: boolean;
  /**
   * The plan. A write that moves the main branch is planned when its turn comes: `mainHead` is the head after the writes before it.
   */
  readonly plan: WritePlan | ((mainHead: Oid | undefined) => Promise<WritePlan | undefined>);
  /** Set for a publication that shares a commit with others of its group that are in the same batch. */
  readonly shared?: SharedWrite | undefined;
  /** Aborts when no caller waits for the write any more; then it is not sent again after a lost race. */
  readonly signal?: AbortSignal | undefined;
  /** Checks, when its turn comes, whether the write is still possible, and throws if not. */
  readonly check?: () => void;
}
