import type { Oid } from '../../git/git-repository.ts';
import type { WritePlan } from '../plan/ports/repository-context.ts';

/** A write that waits for its turn to go out. No two of one revision wait at a time, which the caller ensures. */
export interface PendingWrite {
  /** The package that it is about. */
  readonly package: string;
  /** It makes or removes a revision that others of the package are judged by, so that no other write of the package goes beside it. */
  readonly wholePackage: boolean;
  /** A lifecycle step: it may pass creations and edits. */
  readonly urgent: boolean;
  /**
   * What it does. A write that moves the main branch is planned when its turn has come: `mainHead` is where the writes before it will
   * have brought the branch.
   */
  readonly plan: WritePlan | ((mainHead: Oid | undefined) => Promise<WritePlan | undefined>);
  /** Aborts when no caller waits for the write any more; then it is not sent again after a lost race. */
  readonly signal?: AbortSignal | undefined;
  /** Looks, when its turn has come, whether there still is a place for it, and throws if not. */
  readonly check?: () => void;
}
