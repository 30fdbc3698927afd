import type { ForgeHint } from '../../src/forge/webhook/forge-hint.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** The hints on one repository since the last `take`. */
export interface HintedWork {
  /** All pull requests may be affected. The hints are complete nevertheless, unless there were too many. */
  readonly isAll: boolean;
  /** Distinct, in the order of arrival. */
  readonly hints: readonly ForgeHint[];
}

/** Shortest interval between two wake-ups of one repository. */
const MIN_INTERVAL_MS = 250;
/** Distinct hints that are kept for one repository; beyond that all its pull requests count as affected. */
const MAX_HINTS = 100;

/**
 * Hints from webhooks that pull requests of a repository changed. They are not kept on disk, since a starting process reads all of them, and
 * a slow poll finds what was never reported. A hint that arrives during a reconciliation leads to another one after it.
 */
export class ForgeHints {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Map<string, ForgeHint> | 'all'>();
  readonly #lastAt = new Map<string, number>();
  readonly #ids = new Map<string, string>();
  /** Repositories that were woken within the last interval, and whether a hint arrived since. */
  readonly #recentlyWoken = new Map<string, boolean>();
  #enqueue: ((repository: ObjectKey) => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a hint on a registered repository, and wakes its controller: at once, or after the interval if it was woken recently. */
  add(repository: ObjectKey, hint: ForgeHint): void {
    const key = keyText(repository);
    this.#lastAt.set(key, this.#clock.now());
    const waiting = this.#waiting.get(key) ?? new Map<string, ForgeHint>();
    this.#waiting.set(key, waiting);
    if (waiting !== 'all') {
      const { kind, pullRequest, branch, commit } = hint;
      waiting.set(JSON.stringify([kind, pullRequest, branch, commit]), hint);
      if (waiting.size > MAX_HINTS) this.#waiting.set(key, 'all');
    }
    this.#wake(repository, key);
  }

  /** Returns and removes the hints that wait for a repository; undefined if there are none. */
  take(repository: ObjectKey): HintedWork | undefined {
    const key = keyText(repository);
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    if (waiting === undefined) return undefined;
    if (waiting === 'all') return { isAll: true, hints: [] };
    const hints = [...waiting.values()];
    return { isAll: hints.some(({ pullRequest }) => pullRequest === undefined), hints };
  }

  /** True if hints wait for a repository. */
  has(repository: ObjectKey): boolean {
    return this.#waiting.has(keyText(repository));
  }

  /**
   * When the last hint arrived, in milliseconds since the epoch; undefined if none did since the start of the process. While hints arrive, polls
   * may be rare.
   */
  lastWebhookAt(repository: ObjectKey): number | undefined {
    return this.#lastAt.get(keyText(repository));
  }

  /** To be called with the number of a repository at its host, once it was read there: messages about another number do not count. */
  identify(repository: ObjectKey, id: string): void {
    this.#ids.set(keyText(repository), id);
  }

  /** What `identify` was called with. */
  idOf(repository: ObjectKey): string | undefined {
    return this.#ids.get(keyText(repository));
  }

  /** To be called when a repository is no longer registered, or registered with another address. */
  forget(repository: ObjectKey): void {
    const key = keyText(repository);
    for (const known of [this.#waiting, this.#lastAt, this.#ids]) known.delete(key);
  }

  /** Calls `enqueue` for each repository to wake; the returned function ends the subscription. */
  subscribe(enqueue: (repository: ObjectKey) => void): () => void {
    this.#enqueue = enqueue;
    return () => {
      this.#enqueue = undefined;
    };
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
    this.#enqueue?.(repository);
  }
}
