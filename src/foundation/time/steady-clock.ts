import type { Clock } from './clock.ts';

/** The wall clock may gain so much of the running time: NTP slews clocks by at most 0.05 %. */
const MAX_GAIN = 0.01;
/** A larger difference is a jump. */
export const MAX_LAG_MS = 30_000;
/** A jump ahead that has lasted so long is a correction of a clock that was behind, or the machine was suspended. */
export const ACCEPTED_AFTER_MS = 600_000;

/**
 * A clock that follows the wall clock back at once, and ahead only as fast as time passes: what begins or ends at a time does not because the wall
 * clock of a machine is ahead for some seconds. It follows a jump ahead that lasts. Reads the wall clock only when it is read.
 */
export class SteadyClock implements Clock {
  readonly #clock: Clock;
  /** Wall clock less running time. */
  #offset: number;
  #readAt: number;
  #jump: { readonly offset: number; readonly at: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#readAt = clock.monotonic();
    this.#offset = clock.now() - this.#readAt;
  }

  now(): number {
    const running = this.#clock.monotonic();
    const offset = this.#clock.now() - running;
    this.#offset = Math.min(offset, this.#offset + (running - this.#readAt) * MAX_GAIN);
    this.#readAt = running;
    this.#followLasting(offset, running);
    return Math.floor(running + this.#offset);
  }

  /** Whether the wall clock is ahead of this one by a jump. */
  get isAhead(): boolean {
    return this.#clock.now() - this.now() > MAX_LAG_MS;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  schedule(delay: number, action: () => void): () => void {
    return this.#clock.schedule(delay, action);
  }

  #followLasting(offset: number, running: number): void {
    if (offset - this.#offset <= MAX_LAG_MS) {
      this.#jump = undefined;
      return;
    }
    const before = this.#jump;
    if (before === undefined || Math.abs(offset - before.offset) > MAX_LAG_MS) this.#jump = { offset, at: running };
    else if (running - before.at >= ACCEPTED_AFTER_MS) {
      this.#offset = offset;
      this.#jump = undefined;
    }
  }
}
