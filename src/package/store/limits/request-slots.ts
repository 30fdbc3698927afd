import { Limiter } from '../../../foundation/concurrency/limiter.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { EntryPoint, RequestContext } from '../../../resource/object/request-context.ts';
import type { BackgroundLimits } from './background-limits.ts';

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
  /** Of the controllers of this process. Default: no limit but that of all plans. */
  readonly background?: BackgroundLimits | undefined;
}

/** What a request has from the time when its revision is free for it. */
export interface RequestSlot {
  /** Runs the plan of a creation or an edit; once at most. */
  plan<Plan>(work: () => Promise<Plan>): Promise<Plan>;
  /** To be called once, when the request is over: the revision is free again. */
  free(): void;
}

/** Which requests of one repository run, and which wait. */
export class RequestSlots {
  readonly #namespace: string;
  readonly #plans: Limiter;
  readonly #background: BackgroundLimits | undefined;
  /** Plans that run, and those of users that wait. */
  #planning = 0;
  #planned = Promise.withResolvers<void>();
  /** Runs creations and edits, from their plans to their commits. */
  readonly requests: Limiter;
  /** Requests that are under way, by the revision. */
  readonly #busy = new Map<
    string,
    { readonly face: EntryPoint; readonly isOfGroup: boolean; readonly over: Promise<void> }
  >();
  /** Requests of users that wait or are under way. */
  #users = 0;
  /** Aborted while there are any. */
  #noUsers = new AbortController();

  constructor({ namespace, clock, maxWrites, background }: RequestSlotsOptions) {
    this.#namespace = namespace;
    this.#plans = new Limiter({ maxRunning: MAX_PLANS, slowAfterMs: PLAN_TIMEOUT_MS, clock });
    this.#background = background;
    const maxRunning = MAX_REQUESTS_PER_WRITE * maxWrites;
    this.requests = new Limiter({ maxRunning, slowAfterMs: REQUEST_TIMEOUT_MS, clock });
  }

  /** Resolves when there is no plan that runs, or that a user waits for; undefined if that is so. */
  get planned(): Promise<void> | undefined {
    return this.#planning === 0 ? undefined : this.#planned.promise;
  }

  /**
   * Waits for a place among the writes of controllers in all repositories, and returns what frees it again. Rejects when the signal aborts, and
   * while a user's request waits or is under way: it may wait for any write of a controller to this repository, which then needs no place.
   */
  async acquireWrite(signal: AbortSignal): Promise<() => void> {
    if (this.#background === undefined) return () => undefined;
    return this.#background.writes.acquire(AbortSignal.any([signal, this.#noUsers.signal]));
  }

  /**
   * Waits until a revision is free for a request. A controller's request that `plans` first waits for a place among the plans of all
   * repositories: a user must not wait for one by waiting for its revision.
   */
  async occupy(name: string, context: RequestContext, { plans }: { readonly plans: boolean }): Promise<RequestSlot> {
    const isOfUser = context.face !== 'controller';
    let place: (() => void) | undefined;
    if (plans && !isOfUser && this.#background !== undefined) place = await this.#background.plans.acquire();
    const freePlace = () => {
      place?.();
      place = undefined;
    };
    const leave = isOfUser ? this.#enter() : freePlace;
    try {
      const release = await this.#reserve(name, context);
      return {
        plan: (work) => this.#plan(place === undefined ? () => this.#plans.run(work) : () => work().finally(freePlace)),
        free: () => {
          release();
          leave();
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  #enter(): () => void {
    const leaveAll = this.#background?.enterUser();
    this.#users += 1;
    this.#noUsers.abort();
    return () => {
      leaveAll?.();
      this.#users -= 1;
      if (this.#users === 0) this.#noUsers = new AbortController();
    };
  }

  async #plan<Plan>(work: () => Promise<Plan>): Promise<Plan> {
    this.#planning += 1;
    try {
      return await work();
    } finally {
      this.#planning -= 1;
      // Its caller queues it first, and the next one that waited for its place begins.
      setImmediate(() => {
        if (this.#planning > 0) return;
        this.#planned.resolve();
        this.#planned = Promise.withResolvers<void>();
      });
    }
  }

  /**
   * Reserves a revision when it is free, and returns what frees it again. Porch's clients expect a second request on one revision
   * to be refused, not queued; only behind a controller's write does a request wait.
   */
  async #reserve(name: string, { face, together }: RequestContext): Promise<() => void> {
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
