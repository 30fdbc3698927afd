import { Limiter } from '../../foundation/concurrency/limiter.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { EntryPoint, RequestContext } from '../../resource/object/request-context.ts';

/** Creations and edits that are planned at a time: a burst of them must not keep lifecycle steps from the objects that those read. */
const MAX_PLANS = 16;
/** A plan that takes longer, in milliseconds, waits for functions or for another repository. */
const PLAN_TIMEOUT_MS = 1000;
/** Creations and edits under way: one request full of them, and the next. What is planned beyond waits in memory for no use. */
const MAX_REQUESTS_PER_WRITE = 2;
const REQUEST_TIMEOUT_MS = 10_000;

export interface RequestSlotsOptions {
  /** Of the repository, for messages. */
  readonly namespace: string;
  readonly clock: Clock;
  /** How many changes one write to the repository has at most. */
  readonly maxWrites: number;
}

/** Which requests of one repository run, and which wait. */
export class RequestSlots {
  readonly #namespace: string;
  readonly #plans: Limiter;
  /** Plans that run or wait. */
  #planning = 0;
  #planned = Promise.withResolvers<void>();
  /** Runs creations and edits, from their plans to their commits. */
  readonly requests: Limiter;
  /** Requests that are under way, by the revision. */
  readonly #busy = new Map<
    string,
    { readonly face: EntryPoint; readonly isOfGroup: boolean; readonly over: Promise<void> }
  >();

  constructor({ namespace, clock, maxWrites }: RequestSlotsOptions) {
    this.#namespace = namespace;
    this.#plans = new Limiter({ maxRunning: MAX_PLANS, slowAfterMs: PLAN_TIMEOUT_MS, clock });
    const maxRunning = MAX_REQUESTS_PER_WRITE * maxWrites;
    this.requests = new Limiter({ maxRunning, slowAfterMs: REQUEST_TIMEOUT_MS, clock });
  }

  /** Runs the plan of a creation or an edit. */
  async plan<Plan>(work: () => Promise<Plan>): Promise<Plan> {
    this.#planning += 1;
    try {
      return await this.#plans.run(work);
    } finally {
      this.#planning -= 1;
      if (this.#planning === 0) {
        // Their callers queue them first.
        setImmediate(this.#planned.resolve);
        this.#planned = Promise.withResolvers<void>();
      }
    }
  }

  /** Resolves when no plan runs or waits; undefined if that is so. */
  get planned(): Promise<void> | undefined {
    return this.#planning === 0 ? undefined : this.#planned.promise;
  }

  /**
   * Waits until a revision is free for a request and returns what frees it again. Porch's clients expect a second request on one revision
   * to be refused, not queued; only behind a controller's write does a request wait.
   */
  async occupy(name: string, { face, together }: RequestContext): Promise<() => void> {
    for (let other = this.#busy.get(name); other !== undefined; other = this.#busy.get(name)) {
      if (other.face !== 'controller') {
        throw new SluiceError(
          'Busy',
          `another request is already in progress on package revision "${this.#namespace}/${name}"`,
        );
      }
      // Two groups can have the same revisions in another order: then each would wait for requests that wait behind the other.
      if (other.isOfGroup) together?.end();
      await other.over;
    }
    const over = Promise.withResolvers<void>();
    this.#busy.set(name, { face, isOfGroup: together !== undefined, over: over.promise });
    return () => {
      this.#busy.delete(name);
      over.resolve();
    };
  }
}
