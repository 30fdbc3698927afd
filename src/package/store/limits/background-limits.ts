import { Limiter } from '../../../foundation/concurrency/limiter.ts';
import type { Clock } from '../../../foundation/time/clock.ts';

/** Two keep the event loop busy while others wait for Git or for functions. */
const MAX_PLANS = 4;
/** A plan that takes longer, in milliseconds, waits for something else than the event loop. */
const SLOW_PLAN_MS = 500;
/** Each writes files and waits for them, and its remote may be on this machine. */
const MAX_WRITES = 4;
/** A write that takes longer, in milliseconds, waits for its remote, which need not be on this machine. */
const SLOW_WRITE_MS = 250;

/** A request of a user that takes longer, in milliseconds, waits for its remote too: controllers need not make room for it. */
const SLOW_REQUEST_MS = 2000;

/**
 * Bounds what controllers do at a time in all repositories of a process. The requests of users need none of these places, nor do they wait for
 * what waits for one (see `RequestSlots`): they share the event loop and the disk only with what runs, however many repositories a change of a
 * blueprint concerns.
 *
 * While a request of a user is under way, a slow plan or write keeps its place: on a machine without an idle core all of them are slow, and the
 * more of them run, the slower each is.
 */
export class BackgroundLimits {
  readonly plans: Limiter;
  readonly writes: Limiter;

  readonly #clock: Clock;
  /** Requests that are under way, and not slow. */
  #users = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const maxWithSlow = (most: number) => () => (this.#users > 0 ? most : Number.POSITIVE_INFINITY);
    this.plans = new Limiter({
      ...{ maxRunning: MAX_PLANS, maxWithSlow: maxWithSlow(MAX_PLANS), slowAfterMs: SLOW_PLAN_MS, clock },
    });
    this.writes = new Limiter({
      ...{ maxRunning: MAX_WRITES, maxWithSlow: maxWithSlow(MAX_WRITES), slowAfterMs: SLOW_WRITE_MS, clock },
    });
  }

  /** Makes room for a request of a user until it is over, when the returned function is to be called, or slow. */
  enterUser(): () => void {
    this.#users += 1;
    let isCounted = true;
    const leave = () => {
      cancel();
      if (!isCounted) return;
      isCounted = false;
      this.#users -= 1;
      if (this.#users > 0) return;
      this.plans.update();
      this.writes.update();
    };
    const cancel = this.#clock.schedule(SLOW_REQUEST_MS, leave);
    return leave;
  }
}
