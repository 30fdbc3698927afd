import type { Clock } from '../../foundation/time/clock.ts';

/** Remembers messages for a while, and at most so many of them: beyond that the oldest is forgotten. */
export class SeenMessages {
  readonly #clock: Clock;
  readonly #milliseconds: number;
  readonly #limit: number;
  /** In the order of arrival. */
  readonly #seen = new Map<string, number>();

  constructor(clock: Clock, milliseconds: number, limit: number) {
    this.#clock = clock;
    this.#milliseconds = milliseconds;
    this.#limit = limit;
  }

  get size(): number {
    return this.#seen.size;
  }

  /** True if it is not remembered; from now on it is. */
  add(id: string): boolean {
    const now = this.#clock.now();
    for (const [old, at] of this.#seen) {
      // After the clock was set back, what was seen later than now is forgotten too.
      if (now >= at && now - at < this.#milliseconds && this.#seen.size < this.#limit) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(id)) return false;
    this.#seen.set(id, now);
    return true;
  }
}
