import type { Clock } from '../foundation/time/clock.ts';

/** At most `most` items that have a limit of this name are processed at the same time. */
export interface WorkLimit {
  readonly name: string;
  readonly most: number;
}

export interface WorkQueueOptions<Item> {
  readonly clock: Clock;
  /** Returns a key that is equal for equal items. */
  readonly keyOf: (item: Item) => string;
  /** Delay after the first failure, in milliseconds; doubles with each further one. Default 5. */
  readonly baseDelayMs?: number;
  /** The longest delay after failures, in milliseconds. Default 1,000,000. */
  readonly maxDelayMs?: number;
  /** The limits of an item that has failed so many times in a row. An item that exceeds one lets others pass. Default: none. */
  readonly limitsOf?: (item: Item, failures: number) => readonly WorkLimit[];
  /** Called with how many milliseconds an item was ready before a worker took it. */
  readonly onDequeue?: (waited: number) => void;
  /** Called after every change of the queue's state. */
  readonly onChange?: () => void;
}

/** Reason why an item waits: for its next attempt after a failure, or for a time that its reconciler requested. */
export type WaitCause = 'backoff' | 'time';

export interface WaitingItem<Item> {
  readonly item: Item;
  readonly key: string;
  /** Time at which it becomes ready, in milliseconds since the epoch. */
  readonly due: number;
  readonly cause: WaitCause;
  /** Human-readable: the reason for the wait, or the failure. */
  readonly reason: string | undefined;
}

export interface WorkQueueMetrics {
  /** Items that are ready. */
  readonly depth: number;
  readonly processing: number;
  /** Items that wait for a time, failed ones among them. */
  readonly waiting: number;
  /** Items that have failed since their last success. */
  readonly failing: number;
  /** Counts since the start. */
  readonly adds: number;
  readonly retries: number;
  /** Milliseconds for which items have been processed by now: of all of them together, and of the oldest. */
  readonly unfinishedMs: number;
  readonly longestMs: number;
}

interface Ready<Item> {
  readonly item: Item;
  readonly since: number;
}

interface Waiting<Item> extends WaitingItem<Item> {
  /** The same in milliseconds of running time. */
  readonly dueMs: number;
  readonly cancel: () => void;
}

/**
 * A work queue that contains each item once, like the one of client-go:
 * - an item that is ready or waits is not added twice; an item that is added while it is processed runs once more;
 * - one item is never processed twice at the same time;
 * - ready items are taken in the order in which they became ready, so no item starves another, save those that are prioritized and those
 *   that exceed a limit;
 * - of two delays for one item the earlier applies, and an immediate add ends the wait.
 */
export class WorkQueue<Item> {
  readonly #options: WorkQueueOptions<Item>;
  readonly #baseDelay: number;
  readonly #maxDelay: number;
  #ready = new Map<string, Ready<Item>>();
  /** Ready items by the name of the limit that they would exceed. */
  readonly #held = new Map<string, Map<string, Ready<Item>>>();
  /** The name of that limit, by item. */
  readonly #holds = new Map<string, string>();
  /** The number of items being processed, by the name of the limit. */
  readonly #occupied = new Map<string, number>();
  /** When the work on each item began, and the limits that it occupies. */
  readonly #processing = new Map<string, { readonly since: number; readonly limits: readonly WorkLimit[] }>();
  /** Added while being worked on. */
  readonly #again = new Map<string, Item>();
  readonly #waiting = new Map<string, Waiting<Item>>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((item: Item | undefined) => void)[] = [];
  #closed = false;
  #adds = 0;
  #retries = 0;

  constructor(options: WorkQueueOptions<Item>) {
    this.#options = options;
    this.#baseDelay = options.baseDelayMs ?? 5;
    this.#maxDelay = options.maxDelayMs ?? 1_000_000;
  }

  /** Makes an item ready now. */
  add(item: Item): void {
    if (this.#closed) return;
    this.#adds += 1;
    const key = this.#options.keyOf(item);
    this.#endWait(key);
    this.#makeReady(key, item);
    this.#options.onChange?.();
  }

  /** Moves an item before all others that are ready, for a request that waits for it. An item that is not ready stays as it is. */
  prioritize(item: Item): void {
    const key = this.#options.keyOf(item);
    const ready = this.#ready.get(key);
    if (ready !== undefined) this.#ready = new Map([[key, ready], ...this.#ready]);
    const name = this.#holds.get(key);
    const held = name === undefined ? undefined : this.#held.get(name);
    const one = held?.get(key);
    if (name !== undefined && held !== undefined && one !== undefined)
      this.#held.set(name, new Map([[key, one], ...held]));
  }

  /** Makes an item ready after `delay` milliseconds, unless it is ready sooner. */
  addAfter(item: Item, delay: number, reason?: string): void {
    this.#wait(item, delay, 'time', reason);
  }

  /** Makes an item ready after a delay that doubles with each failure since `forget`, and after at least `least` milliseconds. */
  addRateLimited(item: Item, reason?: string, least = 0): void {
    if (this.#closed) return;
    const key = this.#options.keyOf(item);
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#retries += 1;
    // 2^1023 is the largest power in a number; the maximum delay applies long before.
    const delay = Math.min(this.#maxDelay, this.#baseDelay * 2 ** Math.min(failures, 1000));
    this.#wait(item, Math.max(least, delay), 'backoff', reason);
  }

  /** Ends the count of failures of an item. */
  forget(item: Item): void {
    this.#failures.delete(this.#options.keyOf(item));
    this.#options.onChange?.();
  }

  /** Number of failures of an item since `forget`. */
  failures(item: Item): number {
    return this.#failures.get(this.#options.keyOf(item)) ?? 0;
  }

  /** The next ready item, which must be returned with `done`; undefined after `close`. */
  take(): Promise<Item | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#takers.push(resolve);
      this.#handOut();
    });
  }

  /** Reports that the work on an item has ended. */
  done(item: Item): void {
    const key = this.#options.keyOf(item);
    const ended = this.#processing.get(key);
    if (ended === undefined) return;
    this.#processing.delete(key);
    for (const { name } of ended.limits) {
      const rest = (this.#occupied.get(name) ?? 0) - 1;
      if (rest > 0) this.#occupied.set(name, rest);
      else this.#occupied.delete(name);
      this.#releaseOne(name);
    }
    const again = this.#again.get(key);
    if (this.#again.delete(key) && again !== undefined) this.#makeReady(key, again);
    else this.#handOut();
    this.#options.onChange?.();
  }

  /** Drops all items, refuses new ones, and ends `take`. Running work continues. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting.values()) waiting.cancel();
    this.#waiting.clear();
    this.#ready.clear();
    this.#held.clear();
    this.#holds.clear();
    this.#again.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
    this.#options.onChange?.();
  }

  /**
   * True if no item is ready, being processed, or waiting for a retry. Items that wait for a time do not count, and
   * neither do those that have failed `failureLimit` times or more in a row.
   */
  isQuiet(failureLimit = Number.POSITIVE_INFINITY): boolean {
    if (this.#ready.size > 0 || this.#holds.size > 0 || this.#processing.size > 0) return false;
    for (const [key, waiting] of this.#waiting)
      if (waiting.cause === 'backoff' && (this.#failures.get(key) ?? 0) < failureLimit) return false;
    return true;
  }

  /** The waiting items, the earliest first. */
  waiting(): WaitingItem<Item>[] {
    return [...this.#waiting.values()]
      .map(({ cancel: _cancel, dueMs: _dueMs, ...waiting }) => waiting)
      .sort((left, right) => left.due - right.due);
  }

  metrics(): WorkQueueMetrics {
    const now = this.#options.clock.monotonic();
    const ages = [...this.#processing.values()].map(({ since }) => now - since);
    return {
      unfinishedMs: ages.reduce((sum, age) => sum + age, 0),
      longestMs: Math.max(0, ...ages),
      depth: this.#ready.size + this.#holds.size,
      processing: this.#processing.size,
      waiting: this.#waiting.size,
      failing: this.#failures.size,
      adds: this.#adds,
      retries: this.#retries,
    };
  }

  #makeReady(key: string, item: Item): void {
    if (this.#processing.has(key)) this.#again.set(key, item);
    else if (!this.#holds.has(key)) {
      const since = this.#ready.get(key)?.since ?? this.#options.clock.monotonic();
      this.#ready.set(key, { item, since });
      this.#handOut();
    }
  }

  #wait(item: Item, delay: number, cause: WaitCause, reason: string | undefined): void {
    if (this.#closed) return;
    const key = this.#options.keyOf(item);
    if (!(delay > 0)) {
      this.add(item);
      return;
    }
    if (this.#ready.has(key) || this.#holds.has(key) || this.#again.has(key)) return;
    const { clock } = this.#options;
    const due = clock.now() + delay;
    const dueMs = clock.monotonic() + delay;
    const old = this.#waiting.get(key);
    const sooner = old === undefined || dueMs < old.dueMs;
    if (sooner) old?.cancel();
    // A failure that waits for its next attempt stays one, whatever else requests the item at a later or earlier time.
    const failed = cause === 'backoff' || old?.cause === 'backoff';
    this.#waiting.set(key, {
      item,
      key,
      due: sooner ? due : old.due,
      dueMs: sooner ? dueMs : old.dueMs,
      cause: failed ? 'backoff' : 'time',
      reason: sooner ? reason : old.reason,
      // One timer per item, so that the queue does not depend on the wall clock.
      cancel: sooner ? clock.schedule(delay, () => this.#wakeUp(key)) : old.cancel,
    });
    this.#options.onChange?.();
  }

  #wakeUp(key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    this.#makeReady(key, waiting.item);
    this.#options.onChange?.();
  }

  #endWait(key: string): void {
    this.#waiting.get(key)?.cancel();
    this.#waiting.delete(key);
  }

  #handOut(): void {
    // Items that are released meanwhile are appended, and so are visited too.
    for (const [key, ready] of this.#ready) {
      if (this.#takers.length === 0) return;
      this.#ready.delete(key);
      const { item, since } = ready;
      const limits = this.#options.limitsOf?.(item, this.failures(item)) ?? [];
      const full = limits.find(({ name, most }) => (this.#occupied.get(name) ?? 0) >= most);
      if (full !== undefined) {
        this.#hold(key, ready, full.name);
        // The item may have been released for one of the others, which has room for the next one then.
        for (const { name, most } of limits) if ((this.#occupied.get(name) ?? 0) < most) this.#releaseOne(name);
        continue;
      }
      for (const { name } of limits) this.#occupied.set(name, (this.#occupied.get(name) ?? 0) + 1);
      const now = this.#options.clock.monotonic();
      this.#processing.set(key, { since: now, limits });
      this.#options.onDequeue?.(now - since);
      this.#takers.shift()?.(item);
    }
  }

  #hold(key: string, ready: Ready<Item>, name: string): void {
    const held = this.#held.get(name) ?? new Map<string, Ready<Item>>();
    this.#held.set(name, held.set(key, ready));
    this.#holds.set(key, name);
  }

  /** Makes the first item that a limit holds ready again, behind those of others. */
  #releaseOne(name: string): void {
    const held = this.#held.get(name);
    const [first] = held ?? [];
    if (held === undefined || first === undefined) return;
    const [key, ready] = first;
    held.delete(key);
    if (held.size === 0) this.#held.delete(name);
    this.#holds.delete(key);
    this.#ready.set(key, ready);
  }
}
