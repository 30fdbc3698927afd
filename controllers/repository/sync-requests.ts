import type { Clock } from '../../src/foundation/time/clock.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** See `PackageRepository.sync`. */
export type SyncScope = 'branches' | 'everything';

/** The requests since the last `take`. */
export interface SyncRequest {
  /** The refs to sync; undefined if no sync was requested. */
  readonly scope: SyncScope | undefined;
}

/** Requests to evaluate the checks of commits again that are kept of one repository. */
const MAX_RERUNS = 100;

/** What is to be read of the pull requests of a repository, besides what has changed. */
export interface ReviewRequest {
  /** Commits whose checks are to be evaluated again. */
  readonly reruns: ReadonlySet<string>;
  /** A merge queue waits for checks. */
  readonly mergeQueue: boolean;
  /** A webhook has reported something of a pull request. */
  readonly isReported: boolean;
}

/** Shortest interval between two wake-ups of one repository. */
const MIN_INTERVAL_MS = 250;

/**
 * Requests for syncs that come from no object but, for instance, from a webhook. They are hints and not kept on disk, since a
 * starting process syncs everything anyway. A request during a sync leads to another sync after it.
 */
export class SyncRequests {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, SyncRequest>();
  /** Repositories that were woken within the last interval, and whether a request arrived since. */
  readonly #recentlyWoken = new Map<string, boolean>();
  readonly #reviews = new Map<string, { readonly reruns: Set<string>; mergeQueue: boolean; isReported: boolean }>();
  readonly #listeners = new Set<(repository: ObjectKey) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a request for a repository, and wakes its controllers: at once, or after the interval if it was woken recently. */
  add(repository: ObjectKey, scope: SyncScope | undefined): void {
    const key = keyText(repository);
    const before = this.#waiting.get(key)?.scope;
    this.#waiting.set(key, { scope: before === 'everything' ? before : (scope ?? before) });
    this.#wake(repository, key);
  }

  /** Records what the next `takeReview` of a repository returns. Does not wake. */
  addReview(repository: ObjectKey, hint: { readonly rerun: string } | 'merge-queue' | 'pull-request'): void {
    const key = keyText(repository);
    const waiting = this.#reviews.get(key) ?? { reruns: new Set<string>(), mergeQueue: false, isReported: false };
    this.#reviews.set(key, waiting);
    if (hint === 'merge-queue') waiting.mergeQueue = true;
    else if (hint === 'pull-request') waiting.isReported = true;
    else if (waiting.reruns.size < MAX_RERUNS) waiting.reruns.add(hint.rerun);
  }

  /** Returns and removes what waits for the pull requests of a repository. */
  takeReview(repository: ObjectKey): ReviewRequest | undefined {
    const key = keyText(repository);
    const waiting = this.#reviews.get(key);
    this.#reviews.delete(key);
    return waiting;
  }

  /** True if a request waits for a repository. */
  has(repository: ObjectKey): boolean {
    return this.#waiting.has(keyText(repository));
  }

  /** Wakes the controllers of a repository without a sync, as soon as `add` does: what it reports has changed. */
  wake(repository: ObjectKey): void {
    this.#wake(repository, keyText(repository));
  }

  /** Returns and removes the request that waits for a repository. */
  take(repository: ObjectKey): SyncRequest | undefined {
    const key = keyText(repository);
    const request = this.#waiting.get(key);
    this.#waiting.delete(key);
    return request;
  }

  /** Calls `enqueue` for each repository to wake; the returned function ends the subscription. */
  subscribe(enqueue: (repository: ObjectKey) => void): () => void {
    this.#listeners.add(enqueue);
    return () => this.#listeners.delete(enqueue);
  }

  #wake(repository: ObjectKey, key: string): void {
    if (this.#recentlyWoken.has(key)) {
      this.#recentlyWoken.set(key, true);
      return;
    }
    this.#recentlyWoken.set(key, false);
    this.#clock.schedule(MIN_INTERVAL_MS, () => {
      const again = this.#recentlyWoken.get(key);
      this.#recentlyWoken.delete(key);
      if (again === true) this.#wake(repository, key);
    });
    for (const enqueue of this.#listeners) enqueue(repository);
  }
}
