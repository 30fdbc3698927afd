import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { revisionId } from '../../src/package/model/revision/package-revision.ts';

/** A state of a draft without further work, until `due` (milliseconds of running time) if it is set. */
interface SettledState {
  readonly etag: string;
  readonly due: number | undefined;
  readonly reason: string | undefined;
}

/**
 * The states in which drafts settled, so that the event of a controller's own commit, or any other event without a change, does
 * not lead to another run. A cache only: without it the run is repeated, with the same result.
 */
export class SettledCache {
  readonly #clock: Clock;
  readonly #states = new Map<string, SettledState>();
  /** Drafts that were woken since their last run began; a wake during a run must outlive the settled state that it ends with. */
  readonly #woken = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Requests a run after a change outside of the draft. */
  wake(id: string): void {
    this.#woken.add(id);
  }

  forget(id: string): void {
    this.#states.delete(id);
    this.#woken.delete(id);
  }

  /**
   * Returns the time to wait if the draft is settled in this state; undefined, after dropping the state, if a run is
   * due.
   */
  waitIfSettled(revision: PackageRevision): ReconcileResult | undefined {
    const id = revisionId(revision);
    const { etag } = revision;
    const state = this.#states.get(id);
    const woken = this.#woken.delete(id);
    if (!woken && state?.etag === etag && (state.due === undefined || state.due > this.#clock.monotonic()))
      return this.#waitFor(state);
    this.#states.delete(id);
    return undefined;
  }

  /** Marks this state of a draft as settled, for `after` milliseconds or until an event. */
  settle(revision: PackageRevision, after?: number, reason?: string): ReconcileResult {
    const state = {
      etag: revision.etag,
      due: after === undefined ? undefined : this.#clock.monotonic() + after,
      reason,
    };
    this.#states.set(revisionId(revision), state);
    return this.#waitFor(state);
  }

  #waitFor({ due, reason }: SettledState): ReconcileResult {
    if (due === undefined) return {};
    const requeueAfter = due - this.#clock.monotonic();
    return reason === undefined ? { requeueAfter } : { requeueAfter, reason };
  }
}
