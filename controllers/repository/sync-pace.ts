/** Milliseconds between two polls. */
export interface PollIntervals {
  /** Milliseconds after a poll that found a change. */
  readonly shortest: number;
  /** Mean time from the opening to the first poll. */
  readonly first: number;
  /** Without changes, and without a webhook. */
  readonly longest: number;
  /** With a webhook: polls only find pushes that it did not report. */
  readonly longestWithWebhook: number;
}

export const REMOTE_INTERVALS: PollIntervals = {
  shortest: 5000,
  first: 30_000,
  longest: 60_000,
  longestWithWebhook: 300_000,
};

/** A constant interval. */
export function steady(interval: number): PollIntervals {
  return { shortest: interval, first: interval, longest: interval, longestWithWebhook: interval };
}

/** Factor by which a poll without changes multiplies the interval. */
const BACKOFF_FACTOR = 1.5;

/**
 * The intervals between polls of a repository: short while it changes, long while it does not. Polling relies on a webhook from
 * its first message until a poll finds a change that it did not report. Jitter spreads the polls of many repositories.
 */
export class SyncPace {
  readonly #intervals: PollIntervals;
  readonly #random: () => number;
  #interval: number;
  #hasWebhook = false;

  /** `random` returns numbers from 0 to below 1. */
  constructor(intervals: PollIntervals, random: () => number) {
    this.#intervals = intervals;
    this.#random = random;
    this.#interval = intervals.first;
  }

  /** Milliseconds until the first poll: anywhere around `first`, since all repositories are opened together. */
  first(): number {
    return Math.max(this.#intervals.shortest, 2 * this.#intervals.first * this.#random());
  }

  noteWebhook(): void {
    this.#hasWebhook = true;
  }

  /** Milliseconds until the next poll, after a sync that `found` changes, and that was a poll or requested. */
  next(found: boolean, isPoll: boolean): number {
    if (found && isPoll) this.#hasWebhook = false;
    const { shortest, longest, longestWithWebhook } = this.#intervals;
    const limit = this.#hasWebhook ? longestWithWebhook : longest;
    this.#interval = found && !this.#hasWebhook ? shortest : Math.min(limit, this.#interval * BACKOFF_FACTOR);
    return this.#interval * (0.75 + 0.5 * this.#random());
  }
}
