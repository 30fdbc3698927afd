/** A bucket that holds what a minute permits, and is refilled evenly. */
export class RateLimit {
  #tokens: number;
  #at: number;

  constructor(maxPerMinute: number, now: number) {
    this.#tokens = maxPerMinute;
    this.#at = now;
  }

  /** Takes one and returns 0, or returns the milliseconds until there is one. */
  take(maxPerMinute: number, now: number): number {
    this.#refill(maxPerMinute, now);
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) * 60_000) / maxPerMinute);
    this.#tokens -= 1;
    return 0;
  }

  /** Takes one that was used at a time, without asking; to be called in the order of these times, before `take`. */
  spend(maxPerMinute: number, at: number): void {
    this.#refill(maxPerMinute, at);
    this.#tokens = Math.max(0, this.#tokens - 1);
  }

  /** Returns one that was taken, and not used. */
  giveBack(): void {
    this.#tokens += 1;
  }

  #refill(maxPerMinute: number, now: number): void {
    const refill = (Math.max(0, now - this.#at) * maxPerMinute) / 60_000;
    this.#tokens = Math.min(maxPerMinute, this.#tokens + refill);
    this.#at = now;
  }
}
