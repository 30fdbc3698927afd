import type { Clock } from './clock.ts';

interface Timer {
  readonly due: number;
  readonly order: number;
  readonly action: () => void;
}

/** A clock that only a test or simulation advances. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  readonly #start: number;
  #now: number;
  #setBy = 0;
  #scheduled = 0;

  /** `start` in milliseconds since the epoch; default 2026-01-01T00:00:00Z. */
  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
    this.#now = start;
  }

  now(): number {
    return this.#now + this.#setBy;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  /** Sets the wall clock ahead, or back by less than 0, as an operator or NTP does: no time passes. */
  setBy(milliseconds: number): void {
    this.#setBy += milliseconds;
  }

  schedule(delay: number, action: () => void): () => void {
    const timer = { due: this.#now + Math.max(0, delay), order: this.#scheduled, action };
    this.#scheduled += 1;
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due; undefined if none waits. */
  get nextDelay(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.due - this.#now);
  }

  /** Advances the time and runs due timers, in order, each at its own time. Timers set meanwhile run too if due. */
  advance(milliseconds: number): void {
    const end = this.#now + milliseconds;
    for (let next = this.#next(); next !== undefined && next.due <= end; next = this.#next()) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.action();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Like `advance`, but lets the promises that a timer resolved continue before the next timer fires. */
  async advanceAsync(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settle();
    for (let next = this.#next(); next !== undefined && next.due <= end; next = this.#next()) {
      this.advance(Math.max(0, next.due - this.#now));
      await settle();
    }
    this.#now = Math.max(this.#now, end);
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.order < first.order))
        first = timer;
    return first;
  }
}

/** Until the promise chains that are ready have run; `setImmediate` comes after all of them. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
