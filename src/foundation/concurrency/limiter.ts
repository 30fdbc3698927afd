import type { Clock } from '../time/clock.ts';

export interface LimiterOptions {
  /** Maximum number of concurrent sections, as long as none is slow. */
  readonly maxRunning: number;
  /** Maximum number of concurrent sections including slow ones; after a change of a function's result call `update`. Default: no bound. */
  readonly maxWithSlow?: number | (() => number);
  /**
   * Milliseconds after which a section counts as slow: it waits for another resource than the shared one, so others need not wait for
   * it.
   */
  readonly slowAfterMs: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly grant: () => void;
  readonly refuse: (reason: unknown) => void;
}

/**
 * Lets a bounded number of asynchronous sections run at a time, in the order of the requests. It is the only limiter besides
 * `mapLimited` for the items of one list, and the `FairQueue` of the server, which shares slots between users and refuses excess
 * requests.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #waiting = new Set<Waiting>();
  #running = 0;
  #slow = 0;
  #closed: { readonly reason: unknown } | undefined;

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  /** Runs a section when there is room. Rejects as the section does, and with the reason of `close`. */
  async run<Result>(section: () => Promise<Result>): Promise<Result> {
    const release = await this.acquire();
    try {
      return await section();
    } finally {
      release();
    }
  }

  /**
   * Waits until there is room for one more section. Call the returned function once, when the section has ended. Rejects with the
   * reason of the signal, or of `close`.
   */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    if (this.#closed !== undefined) throw this.#closed.reason;
    signal?.throwIfAborted();
    // Without a wait if there is room: code up to here runs in the same turn as the section.
    if (this.#waiting.size === 0 && this.#hasRoom()) this.#running += 1;
    else await this.#wait(signal);
    return this.#hold();
  }

  /** Lets sections run for which there is more room now. */
  update(): void {
    this.#grant();
  }

  /** Refuses all sections that wait or are requested later. */
  close(reason: unknown): void {
    this.#closed = { reason };
    for (const { refuse } of this.#waiting) refuse(reason);
    this.#waiting.clear();
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const granted = Promise.withResolvers<void>();
    const waiting: Waiting = { grant: granted.resolve, refuse: granted.reject };
    const onAbort = () => {
      if (this.#waiting.delete(waiting)) granted.reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(waiting);
    try {
      await granted.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #hold(): () => void {
    const { clock, slowAfterMs } = this.#options;
    let isSlow = false;
    const cancel = clock.schedule(slowAfterMs, () => {
      isSlow = true;
      this.#slow += 1;
      this.#grant();
    });
    return () => {
      cancel();
      if (isSlow) this.#slow -= 1;
      this.#running -= 1;
      this.#grant();
    };
  }

  #hasRoom(): boolean {
    const { maxRunning, maxWithSlow = Number.POSITIVE_INFINITY } = this.#options;
    const most = typeof maxWithSlow === 'function' ? maxWithSlow() : maxWithSlow;
    return this.#running - this.#slow < maxRunning && this.#running < most;
  }

  #grant(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom()) return;
      this.#waiting.delete(waiting);
      this.#running += 1;
      waiting.grant();
    }
  }
}
