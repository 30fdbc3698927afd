import { SluiceError } from '../sluice-error.ts';

export interface ShareLimiterOptions {
  readonly maxRunning: number;
  /** Sections of one share that run at the same time, such as those of one namespace. */
  readonly maxRunningOfShare: number;
  /** Sections of one share that wait; more are refused. */
  readonly maxWaitingOfShare: number;
}

/**
 * Lets a bounded number of asynchronous sections run at a time, and fewer of each share. The shares that wait take turns, so that the time
 * until a section runs depends on how many others wait, and not on how many sections they have.
 */
export class ShareLimiter {
  readonly #options: ShareLimiterOptions;
  /** In the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(options: ShareLimiterOptions) {
    this.#options = options;
  }

  /** Rejects as the section does, and with Unavailable if too many of the share wait. */
  async run<Result>(share: string, section: () => Promise<Result>): Promise<Result> {
    const waiting = this.#waiting.get(share) ?? [];
    if (waiting.length >= this.#options.maxWaitingOfShare)
      throw new SluiceError(
        'Unavailable',
        `${waiting.length} others of ${share} wait already; it is tried again later`,
      );
    const granted = Promise.withResolvers<void>();
    waiting.push(granted.resolve);
    this.#waiting.set(share, waiting);
    this.#grant();
    await granted.promise;
    try {
      return await section();
    } finally {
      this.#total -= 1;
      const rest = (this.#running.get(share) ?? 1) - 1;
      if (rest > 0) this.#running.set(share, rest);
      else this.#running.delete(share);
      this.#grant();
    }
  }

  #grant(): void {
    // A copy, since a share that gets its turn moves to the end.
    for (const [share, waiting] of [...this.#waiting]) {
      if (this.#total >= this.#options.maxRunning) return;
      const running = this.#running.get(share) ?? 0;
      if (running >= this.#options.maxRunningOfShare) continue;
      const next = waiting.shift();
      this.#waiting.delete(share);
      if (waiting.length > 0) this.#waiting.set(share, waiting);
      this.#running.set(share, running + 1);
      this.#total += 1;
      next?.();
    }
  }
}
