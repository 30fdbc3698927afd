import { UNKNOWN_LIMIT_MS } from './rate-limit.ts';

const MAX_PAUSE_MS = 3_600_000;

/**
 * A limit of a host, and the pause of the requests that it counts. After a pause a single request finds out whether it has ended, and a limit
 * without a time doubles the pause. Times are milliseconds of a monotonic clock.
 */
export class LimitPause {
  #until = 0;
  /** Pauses since the last response that reports no limit. */
  #count = 0;
  #probe: Promise<void> | undefined;

  /** What others wait for: the one that finds out whether the limit has ended. */
  get probe(): Promise<void> | undefined {
    return this.#probe;
  }

  /** Until requests may be sent; 0 now. */
  leftMs(now: number): number {
    return Math.max(0, this.#until - now);
  }

  /** The host has refused a request, and requires to wait for this time; undefined where it does not say. */
  refuse(now: number, requiredMs: number | undefined): void {
    // Requests that were sent before the pause report the same limit.
    if (this.leftMs(now) === 0) this.#count += 1;
    this.lengthen(now, requiredMs ?? Math.min(UNKNOWN_LIMIT_MS * 2 ** (this.#count - 1), MAX_PAUSE_MS));
  }

  /** The host would refuse requests for this time. */
  lengthen(now: number, ms: number): void {
    this.#until = Math.max(this.#until, now + ms);
  }

  /** The host has accepted a request. */
  accept(now: number): void {
    if (this.leftMs(now) === 0) this.#count = 0;
  }

  /** Before a request is sent. Returns what to call after it. */
  start(): () => void {
    if (this.#count === 0) return () => undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#probe = promise;
    return () => {
      this.#probe = undefined;
      resolve();
    };
  }
}
