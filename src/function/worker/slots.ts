import type { Clock } from '../../foundation/clock.ts';

export interface SlotOptions {
  /** How many are taken at a time, as long as none is slow. */
  readonly count: number;
  /** How many are taken at a time at the most. */
  readonly most: number;
  /** A slot that is held longer than this leaves its place to others; milliseconds. */
  readonly slowAfter: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly grant: () => void;
  readonly refuse: (reason: unknown) => void;
}

/** Lets a bounded number of things happen at a time, in the order of asking. What takes long does not hold up the rest. */
export class Slots {
  readonly #options: SlotOptions;
  readonly #waiting = new Set<Waiting>();
  #taken = 0;
  #slow = 0;
  #closed: { readonly reason: unknown } | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  /** Waits for a slot. The function returned gives it back; it is called once. Rejects with the reason of the signal, or of `close`. */
  async take(signal: AbortSignal): Promise<() => void> {
    if (this.#closed !== undefined) throw this.#closed.reason;
    signal.throwIfAborted();
    const granted = Promise.withResolvers<void>();
    const waiting: Waiting = { grant: granted.resolve, refuse: granted.reject };
    const onAbort = () => {
      if (this.#waiting.delete(waiting)) granted.reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(waiting);
    this.#grant();
    try {
      await granted.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    return this.#hold();
  }

  /** Refuses those that wait and those that come. */
  close(reason: unknown): void {
    this.#closed = { reason };
    for (const { refuse } of this.#waiting) refuse(reason);
    this.#waiting.clear();
  }

  #hold(): () => void {
    const { clock, slowAfter } = this.#options;
    let slow = false;
    const cancel = clock.schedule(slowAfter, () => {
      slow = true;
      this.#slow += 1;
      this.#grant();
    });
    return () => {
      cancel();
      if (slow) this.#slow -= 1;
      this.#taken -= 1;
      this.#grant();
    };
  }

  #grant(): void {
    const { count, most } = this.#options;
    for (const waiting of this.#waiting) {
      if (this.#taken - this.#slow >= count || this.#taken >= most) return;
      this.#waiting.delete(waiting);
      this.#taken += 1;
      waiting.grant();
    }
  }
}
