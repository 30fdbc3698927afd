import { createHmac, randomBytes } from 'node:crypto';
import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';

export interface ReviewCacheOptions<Result> {
  readonly clock: Clock;
  /** Milliseconds for which a result may be used again; 0 for one that may not. */
  readonly lifetimeMs: (result: Result) => number;
  /** Results that are kept. Default 8192, as in Kubernetes. */
  readonly maxEntries?: number | undefined;
  /** Reviews that may be in progress, after which others are refused with TooManyRequests. Default 200. */
  readonly maxRunning?: number | undefined;
  /**
   * True for a result that makes its question a known one. If set, all other questions together have a quarter of `maxRunning`: callers
   * that invent questions must not delay those who have asked before.
   */
  readonly makesKnown?: (result: Result) => boolean;
}

interface Entry<Result> {
  readonly result: Result;
  readonly storedAtMs: number;
  readonly expiresAtMs: number;
}

interface Running<Result> {
  readonly isKnown: boolean;
  readonly result: Promise<Result>;
  readonly end: AbortController;
  callers: number;
}

const MAX_ENTRIES = 8192;
/** Of all results together. A user may be in thousands of groups. */
const MAX_RESULT_CHARACTERS = 32 * 1024 * 1024;
const MAX_RUNNING = 200;
const UNKNOWN_SHARE = 0.25;

/**
 * Keeps the results of reviews, which a cluster makes, for a short time, and shares each review in progress between all callers with
 * the same question. Failures are not kept. Questions, which may be tokens, are kept as hashes with a random key only.
 */
export class ReviewCache<Result extends object | string> {
  readonly #options: ReviewCacheOptions<Result>;
  readonly #entries: LruCache<string, Entry<Result>>;
  readonly #running = new Map<string, Running<Result>>();
  readonly #known: LruCache<string, true>;
  #unknownRunning = 0;
  readonly #key = randomBytes(32);

  constructor(options: ReviewCacheOptions<Result>) {
    this.#options = options;
    this.#entries = new LruCache({
      maxEntries: options.maxEntries ?? MAX_ENTRIES,
      maxSize: MAX_RESULT_CHARACTERS,
    });
    this.#known = new LruCache({ maxEntries: options.maxEntries ?? MAX_ENTRIES });
  }

  /**
   * Returns the result for a question, from `review` if none is kept. Rejects as `review` does; with TooManyRequests if too many are in
   * progress; with Timeout when `signal` aborts. The signal of `review` aborts when no caller waits any more.
   */
  async get(question: string, review: (signal: AbortSignal) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const key = createHmac('sha256', this.#key).update(question).digest('base64');
    const kept = this.#kept(key);
    if (kept !== undefined) return kept.result;
    return this.#wait(key, this.#running.get(key) ?? this.#start(key, review), signal);
  }

  #kept(key: string): Entry<Result> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const now = this.#options.clock.now();
    // A clock that was set back must not extend the lifetime.
    if (now >= entry.storedAtMs && now < entry.expiresAtMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #start(key: string, review: (signal: AbortSignal) => Promise<Result>): Running<Result> {
    const { maxRunning = MAX_RUNNING, makesKnown } = this.#options;
    const isKnown = makesKnown === undefined || this.#known.get(key) !== undefined;
    const maxUnknown = Math.ceil(maxRunning * UNKNOWN_SHARE);
    if (this.#running.size >= maxRunning || (!isKnown && this.#unknownRunning >= maxUnknown)) {
      const count = isKnown ? maxRunning : maxUnknown;
      throw new SluiceError('TooManyRequests', `${count} reviews of the cluster are in progress; try again later`);
    }
    const end = new AbortController();
    const running = { isKnown, result: this.#run(key, review, end.signal), end, callers: 0 };
    this.#running.set(key, running);
    if (!isKnown) this.#unknownRunning += 1;
    return running;
  }

  async #run(key: string, review: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    // Not before this is registered.
    await undefined;
    try {
      const result = await review(signal);
      const lifetimeMs = this.#options.lifetimeMs(result);
      const now = this.#options.clock.now();
      const entry = { result, storedAtMs: now, expiresAtMs: now + lifetimeMs };
      if (lifetimeMs > 0) this.#entries.set(key, entry, JSON.stringify(result).length);
      if (this.#options.makesKnown?.(result) === true) this.#known.set(key, true);
      else this.#known.delete(key);
      return result;
    } finally {
      const running = this.#running.get(key);
      if (running?.end.signal === signal) this.#end(key, running);
    }
  }

  #end(key: string, running: Running<Result>): void {
    this.#running.delete(key);
    if (!running.isKnown) this.#unknownRunning -= 1;
  }

  async #wait(key: string, running: Running<Result>, signal: AbortSignal | undefined): Promise<Result> {
    running.callers += 1;
    try {
      return await untilEnded(signal, () => running.result);
    } finally {
      running.callers -= 1;
      if (running.callers === 0 && this.#running.get(key) === running) {
        this.#end(key, running);
        // The last caller has left.
        running.result.catch(() => undefined);
        running.end.abort();
      }
    }
  }
}
