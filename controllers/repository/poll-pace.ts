/** Milliseconds between two polls. */
export interface PollIntervals {
  /** After a poll that found something. */
  readonly shortest: number;
  /** About when a repository that was opened is first looked at again. */
  readonly first: number;
  /** Where nothing happens, and nobody would tell us. */
  readonly longest: number;
  /** Where a webhook tells of what happens: only what it misses is left to be found. */
  readonly longestWithWebhook: number;
}

export const REMOTE_INTERVALS: PollIntervals = {
  shortest: 5000,
  first: 30_000,
  longest: 60_000,
  longestWithWebhook: 300_000,
};

/** The same pace always. */
export function steady(interval: number): PollIntervals {
  return { shortest: interval, first: interval, longest: interval, longestWithWebhook: interval };
}

/** Each poll that finds nothing makes the pause longer by this factor. */
const SLOWER = 1.5;

/**
 * How often a repository is polled: soon again where somebody is at work, seldom where nothing happens. A webhook is relied on from its
 * first message until a poll finds what it did not tell. Jitter keeps many repositories from being polled in step.
 */
export class PollPace {
  readonly #intervals: PollIntervals;
  readonly #random: () => number;
  #interval: number;
  #hasWebhook = false;

  /** `random` gives numbers from 0 to below 1. */
  constructor(intervals: PollIntervals, random: () => number) {
    this.#intervals = intervals;
    this.#random = random;
    this.#interval = intervals.first;
  }

  /** Milliseconds until the first poll: anywhere around `first`, since all repositories are opened together. */
  first(): number {
    return Math.max(this.#intervals.shortest, 2 * this.#intervals.first * this.#random());
  }

  webhookHeard(): void {
    this.#hasWebhook = true;
  }

  /** Milliseconds until the next poll, after a sync that found something or not, and that somebody asked for or not. */
  next(found: boolean, isPoll: boolean): number {
    if (found && isPoll) this.#hasWebhook = false;
    const { shortest, longest, longestWithWebhook } = this.#intervals;
    const limit = this.#hasWebhook ? longestWithWebhook : longest;
    this.#interval = found && !this.#hasWebhook ? shortest : Math.min(limit, this.#interval * SLOWER);
    return this.#interval * (0.75 + 0.5 * this.#random());
  }
}
