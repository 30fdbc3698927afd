import type { DueRollback } from './decide-rollbacks.ts';

/**
 * Milliseconds after a delivery within which a package has to become unhealthy: a revision that was healthy before is not the cause of a
 * later failure, and going back would not repair it.
 */
const MAX_ONSET_MS = 3_600_000;

/** A delivery or removal of a package in the history of a target's branch. */
export interface PastDelivery {
  /** Undefined if it removed the package. */
  readonly revision: number | undefined;
  /** The published commit that the manifests came from. */
  readonly sourceCommit: string | undefined;
  /** Milliseconds since the epoch. */
  readonly time: number;
}

export interface EarlierRevision {
  readonly to: number;
}

/** Why there is no rollback. The text is the same for all packages with this cause. */
export interface NoRollback {
  readonly because: string;
}

const NOT_SHOWN: NoRollback = {
  because: 'the branch of the target does not show the present revision as the last delivery',
};
const TOO_LATE: NoRollback = { because: 'the failure began more than an hour after the delivery' };
const NONE: NoRollback = { because: 'no lower revision that was delivered here is published in band' };

/**
 * Searches the revision that the target delivered before the failed one. The caller adds the deliveries of the package, the newest first.
 * Nothing is kept of them, so that the packages of a large target can be searched in one walk through the branch.
 */
export class EarlierRevisionSearch {
  readonly #due: DueRollback;
  readonly #counts: (revision: number, sourceCommit: string) => boolean;
  /** The first delivery of the failed revision without another one after it; repairs of the folder repeat it. */
  #first: PastDelivery | undefined;
  #hasOther = false;

  /**
   * `counts` is true for a revision that is still published in band, with this commit: what a branch says about itself is not trusted.
   */
  constructor(due: DueRollback, counts: (revision: number, sourceCommit: string) => boolean) {
    this.#due = due;
    this.#counts = counts;
  }

  /** Returns the result as soon as no older delivery can change it. */
  add(delivery: PastDelivery): EarlierRevision | NoRollback | undefined {
    const { revision, sourceCommit } = delivery;
    const failed = this.#due.delivered.revision;
    if (!this.#hasOther && revision === failed) {
      this.#first = delivery;
      return undefined;
    }
    if (this.#first === undefined) return NOT_SHOWN;
    this.#hasOther = true;
    if (this.#isTooLate(this.#first)) return TOO_LATE;
    if (revision === undefined) return NONE;
    const isFound = revision < failed && sourceCommit !== undefined && this.#counts(revision, sourceCommit);
    return isFound ? { to: revision } : undefined;
  }

  /** The result if there is no older delivery. */
  end(): NoRollback {
    if (this.#first === undefined) return NOT_SHOWN;
    return this.#isTooLate(this.#first) ? TOO_LATE : NONE;
  }

  #isTooLate({ time }: PastDelivery): boolean {
    return Date.parse(this.#due.state.healthy.since) - time > MAX_ONSET_MS;
  }
}
