import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { Clock } from '../../src/foundation/clock.ts';
import type { PackageRevision } from '../../src/package/model/package-revision.ts';
import { revisionId } from '../../src/package/model/package-revision.ts';

/** A state of a draft in which nothing is left to do, until `due` (milliseconds since the epoch) if that is set. */
interface Rest {
  readonly etag: string;
  readonly due: number | undefined;
  readonly reason: string | undefined;
}

/**
 * Which drafts came to rest in which state, so that the event of a controller's own commit, or any other event that brings
 * nothing new, runs nothing again. Only a memory: without it the same is done once more, with the same result.
 */
export class RestingDrafts {
  readonly #clock: Clock;
  readonly #rests = new Map<string, Rest>();
  /** Woken since their last run began; a wake during a run must outlive the rest that the run ends with. */
  readonly #woken = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something outside of the draft changed. */
  wake(id: string): void {
    this.#woken.add(id);
  }

  forget(id: string): void {
    this.#rests.delete(id);
    this.#woken.delete(id);
  }

  /** What to wait for if the draft rests in this very state; undefined, and the rest is over, if it is to be run. */
  stillResting(revision: PackageRevision): ReconcileResult | undefined {
    const id = revisionId(revision);
    const { etag } = revision;
    const rest = this.#rests.get(id);
    const woken = this.#woken.delete(id);
    if (!woken && rest?.etag === etag && (rest.due === undefined || rest.due > this.#clock.now()))
      return this.#waitFor(rest);
    this.#rests.delete(id);
    return undefined;
  }

  /** Lets a draft rest in this state, for `after` milliseconds or until something happens. */
  rest(revision: PackageRevision, after?: number, reason?: string): ReconcileResult {
    const rest = { etag: revision.etag, due: after === undefined ? undefined : this.#clock.now() + after, reason };
    this.#rests.set(revisionId(revision), rest);
    return this.#waitFor(rest);
  }

  #waitFor({ due, reason }: Rest): ReconcileResult {
    if (due === undefined) return {};
    const requeueAfter = due - this.#clock.now();
    return reason === undefined ? { requeueAfter } : { requeueAfter, reason };
  }
}
