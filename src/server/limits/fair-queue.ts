import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';

export interface FairQueueLimits {
  /** Requests that run at once, of all users together. */
  readonly maxRunning: number;
  /** Of one user. */
  readonly maxRunningOfUser: number;
  /** Requests that wait for a slot. */
  readonly maxWaiting: number;
  /** Of one user. */
  readonly maxWaitingOfUser: number;
  /** Milliseconds that a request may wait. */
  readonly maxWaitMs: number;
}

interface Waiter {
  /** Gives the request its slot. */
  readonly start: () => void;
}

/** The running and waiting requests of one user. */
interface Flow {
  running: number;
  readonly waiting: Set<Waiter>;
}

/**
 * Slots for requests, shared fairly between users: a slot that becomes free goes to the user with the fewest running requests, and
 * among these to the one that has waited longest. This is like API Priority and Fairness of Kubernetes, with a queue for each user
 * instead of shuffle sharding, since there are only hundreds of users.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  readonly #clock: Clock;
  readonly #flows = new Map<string, Flow>();
  /** Users with waiting requests, the next in turn first. */
  readonly #inTurn = new Set<string>();
  #running = 0;
  #waiting = 0;

  constructor(limits: FairQueueLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Resolves when a request of `user` may run; the returned function releases its slot. TooManyRequests if the queue is full or the wait is
   * too long, Timeout once `signal` aborts.
   */
  async acquire(user: string, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw ended();
    const flow = this.#flows.get(user) ?? { running: 0, waiting: new Set() };
    const { maxRunning, maxRunningOfUser, maxWaiting, maxWaitingOfUser } = this.#limits;
    const mayRun = this.#running < maxRunning && flow.running < maxRunningOfUser && flow.waiting.size === 0;
    if (!mayRun) {
      if (this.#waiting >= maxWaiting || flow.waiting.size >= maxWaitingOfUser) throw tooMany();
      this.#flows.set(user, flow);
      await this.#wait(user, flow, signal);
    } else {
      this.#flows.set(user, flow);
      this.#occupy(flow);
    }
    return () => {
      this.#running -= 1;
      flow.running -= 1;
      this.#forgetIdle(user, flow);
      this.#startNext();
    };
  }

  #wait(user: string, flow: Flow, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stopWaiting = () => {
        cancel();
        signal.removeEventListener('abort', abort);
        flow.waiting.delete(waiter);
        this.#waiting -= 1;
        if (flow.waiting.size === 0) this.#inTurn.delete(user);
      };
      const giveUp = (error: SluiceError) => {
        stopWaiting();
        this.#forgetIdle(user, flow);
        reject(error);
      };
      const abort = () => giveUp(ended());
      const waiter: Waiter = {
        start: () => {
          stopWaiting();
          this.#occupy(flow);
          resolve();
        },
      };
      const cancel = this.#clock.schedule(this.#limits.maxWaitMs, () => giveUp(tooMany()));
      signal.addEventListener('abort', abort);
      flow.waiting.add(waiter);
      this.#inTurn.add(user);
      this.#waiting += 1;
    });
  }

  #occupy(flow: Flow): void {
    this.#running += 1;
    flow.running += 1;
  }

  #startNext(): void {
    if (this.#running >= this.#limits.maxRunning) return;
    let next: { readonly user: string; readonly flow: Flow } | undefined;
    for (const user of this.#inTurn) {
      const flow = this.#flows.get(user);
      if (flow === undefined || flow.running >= this.#limits.maxRunningOfUser) continue;
      if (next === undefined || flow.running < next.flow.running) next = { user, flow };
    }
    if (next === undefined) return;
    const [first] = next.flow.waiting;
    // Behind all other users with waiting requests.
    this.#inTurn.delete(next.user);
    this.#inTurn.add(next.user);
    first?.start();
  }

  #forgetIdle(user: string, flow: Flow): void {
    if (flow.running === 0 && flow.waiting.size === 0) this.#flows.delete(user);
  }
}

function ended(): SluiceError {
  return new SluiceError('Timeout', 'the request ended while it waited for its turn');
}

function tooMany(): SluiceError {
  return new SluiceError('TooManyRequests', 'too many requests, please try again later');
}
