import type { Clock } from '../../src/foundation/clock.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** See `PackageRepository.sync`. */
export type SyncScope = 'branches' | 'everything';

/** What was heard from outside since it was last asked. */
export interface SyncRequest {
  /** What a sync should look at; undefined if none was asked for. */
  readonly scope: SyncScope | undefined;
}

/** Milliseconds between two times that one repository is woken, however often it is asked for. */
const REST = 250;

/**
 * Requests for syncs that come from no object, but from a webhook for instance. They are hints, so they are not kept on disk: when a
 * process starts it reads everything anyway. What is asked for while a sync is under way leads to one more after it.
 */
export class SyncRequests {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, SyncRequest>();
  /** Those that were woken a moment ago, and whether they were asked for again since. */
  readonly #resting = new Map<string, boolean>();
  #enqueue: ((repository: ObjectKey) => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes that somebody spoke for a repository, and wakes its controller: at once, or soon if it was woken just now. */
  add(repository: ObjectKey, scope: SyncScope | undefined): void {
    const key = keyText(repository);
    const before = this.#waiting.get(key)?.scope;
    this.#waiting.set(key, { scope: before === 'everything' ? before : (scope ?? before) });
    this.#wake(repository, key);
  }

  /** What waits for a repository; it waits no more. */
  take(repository: ObjectKey): SyncRequest | undefined {
    const key = keyText(repository);
    const request = this.#waiting.get(key);
    this.#waiting.delete(key);
    return request;
  }

  /** Tells `enqueue` of each repository that is to be woken; the returned function ends it. */
  subscribe(enqueue: (repository: ObjectKey) => void): () => void {
    this.#enqueue = enqueue;
    return () => {
      this.#enqueue = undefined;
    };
  }

  #wake(repository: ObjectKey, key: string): void {
    if (this.#resting.has(key)) {
      this.#resting.set(key, true);
      return;
    }
    this.#resting.set(key, false);
    this.#clock.schedule(REST, () => {
      const again = this.#resting.get(key);
      this.#resting.delete(key);
      if (again === true) this.#wake(repository, key);
    });
    this.#enqueue?.(repository);
  }
}
