import type { Clock } from './clock.ts';

/**
 * Lets so many asynchronous sections run at a time; the others begin in the order in which they were asked for. A section that takes
 * longer than `patience` milliseconds no longer counts: what it waits for is not what is shared here, and others must not wait for it
 * too.
 */
export class Slots {
  readonly #clock: Clock;
  readonly #patience: number;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number, patience: number, clock: Clock) {
    this.#free = count;
    this.#patience = patience;
    this.#clock = clock;
  }

  async run<Result>(section: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let counts = true;
    const release = () => {
      if (!counts) return;
      counts = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    };
    const cancel = this.#clock.schedule(this.#patience, release);
    try {
      return await section();
    } finally {
      cancel();
      release();
    }
  }
}
