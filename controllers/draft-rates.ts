import { RateLimit } from '../src/foundation/concurrency/rate-limit.ts';
import { LruCache } from '../src/foundation/lru-cache.ts';
import type { Clock } from '../src/foundation/time/clock.ts';

/**
 * Of one package, by all controllers that open drafts because other packages changed. Where what they open is approved automatically, a ring that no
 * search sees, such as by functions, would otherwise publish without end.
 */
export const MAX_DRAFTS_OF_PACKAGE_PER_MINUTE = 5;
/** Namespaces, packages and policies whose last drafts are remembered. */
const MAX_RATES = 10_000;

/** A limit on the drafts in a minute, of a package or of others together. */
export interface DraftRate {
  readonly of: string;
  readonly most: number;
}

/** The drafts that controllers have opened in the last minute. */
export class DraftRates {
  readonly #clock: Clock;
  readonly #rates = new LruCache<string, RateLimit>({ maxEntries: MAX_RATES });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a draft from each rate, and returns undefined; or from none, and returns the first that permits none, with the milliseconds until it does. */
  take<Rate extends DraftRate>(rates: readonly Rate[]): { readonly rate: Rate; readonly pauseMs: number } | undefined {
    const taken: RateLimit[] = [];
    const now = this.#clock.monotonic();
    for (const rate of rates) {
      const limit = this.#rates.get(rate.of) ?? new RateLimit(rate.most, now);
      this.#rates.set(rate.of, limit);
      const pauseMs = limit.take(rate.most, now);
      if (pauseMs > 0) {
        for (const other of taken) other.giveBack();
        return { rate, pauseMs };
      }
      taken.push(limit);
    }
    return undefined;
  }

  /** Returns a draft that was taken, and could not be opened. */
  giveBack({ of }: DraftRate): void {
    this.#rates.get(of)?.giveBack();
  }
}

/** The rate of one package. */
export function rateOfPackage(namespace: string, repository: string, path: string): DraftRate {
  return { of: `${namespace}/${repository}/${path}`, most: MAX_DRAFTS_OF_PACKAGE_PER_MINUTE };
}
