import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { KubernetesObject, Stored } from '../object/object.ts';
import type { WatchEvent } from '../storage/storage.ts';
import type { IndexKey } from './index-key.ts';
import type { LogEntry, LoggedChange } from './log-entry.ts';
import { WatchBuffer } from './watch-buffer.ts';

/** Stores changes beyond the lifetime of the process, and finds those that are no longer in memory. */
export interface EventJournal {
  /** The version to continue from. */
  readonly start: bigint;
  /** The newest version of a kind that is no longer kept; a watch from before it must list again. */
  floor(topic: string): bigint;
  /** Keeps a change, which is durable with the next commit; or only its version, where no watch will need it later. */
  note(topic: string, entry: LogEntry, keep: boolean): void;
  /** Raises the floor of a kind. */
  forget(topic: string, version: bigint): void;
  /** Entries of a kind after one version and up to another, oldest first, at most `limit`. */
  read(topic: string, after: bigint, upTo: bigint, limit: number): LogEntry[];
}

export interface EventLogOptions {
  readonly clock: Clock;
  /** Maximum number of events of one kind in memory. Default 10,000, or 2,000 with a journal. */
  readonly maxEvents?: number;
  /** A watch gets a BOOKMARK after this time without an event, in milliseconds. Default 15,000. */
  readonly bookmarkIntervalMs?: number;
  /**
   * Maximum number of events that wait for a watcher before its watch ends with Expired. Default 5,000, or the window if that is
   * less.
   */
  readonly maxBufferedEvents?: number;
  /**
   * Approximate maximum size in bytes of the events of one kind in memory, and of those that wait for one watcher. Default 64
   * MiB each.
   */
  readonly maxBytes?: number;
  readonly journal?: EventJournal;
  /** The version to continue from, where there is no journal. Default 0. */
  readonly start?: bigint;
}

export interface FollowOptions<T extends KubernetesObject> {
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
  readonly selects: (object: Stored<T>) => boolean;
  /** A key that all selected objects have, so that the watcher receives only these. */
  readonly indexKey?: IndexKey | undefined;
}

/** The events of one kind that are in memory, and the watchers that wait for more. */
interface Topic {
  entries: LogEntry[];
  /** Bytes of the entries. */
  size: number;
  /** The newest version that is not in memory any more. */
  dropped: bigint;
  readonly unselective: Set<WatchBuffer>;
  readonly selective: Map<IndexKey, Set<WatchBuffer>>;
}

const JOURNAL_PAGE_ENTRIES = 500;

/**
 * The changes of all kinds in one order: the version is common to all of them. Each kind has its own bounded window, so that a busy
 * kind never expires the watches of a quiet one; an optional journal goes further back and is durable. A write only adds a
 * reference to the buffers of those watchers that may select it: a slow watcher delays no other request, and its watch ends with
 * Expired once its buffer is full.
 */
export class EventLog {
  readonly #clock: Clock;
  readonly #window: number;
  readonly #bookmarkInterval: number;
  readonly #buffer: number;
  readonly #maxBytes: number;
  readonly #journal: EventJournal | undefined;
  readonly #topics = new Map<string, Topic>();
  readonly #start: bigint;
  readonly #unkept = new Set<LogEntry>();
  #version: bigint;
  #closed = false;

  constructor(options: EventLogOptions) {
    this.#clock = options.clock;
    this.#journal = options.journal;
    this.#window = Math.max(1, options.maxEvents ?? (options.journal === undefined ? 10_000 : 2000));
    this.#bookmarkInterval = options.bookmarkIntervalMs ?? 15_000;
    this.#buffer = options.maxBufferedEvents ?? Math.min(5000, this.#window);
    this.#maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
    this.#start = options.journal?.start ?? options.start ?? 0n;
    this.#version = this.#start;
  }

  /** The version of the last change of any kind. */
  get version(): string {
    return String(this.#version);
  }

  /**
   * Appends one change. `make` receives the version of the change and returns the entry; if it throws, nothing is
   * logged and no version is used. `topic` names the kind. With `keep` false only watchers in this process receive it.
   */
  append<T extends KubernetesObject>(
    topic: string,
    make: (resourceVersion: string) => LoggedChange<T>,
    keep = true,
  ): void {
    const version = this.#version + 1n;
    const change = make(String(version));
    this.#version = version;
    const entry = { version, change };
    this.#journal?.note(topic, entry, keep);
    if (!keep) this.#unkept.add(entry);
    this.publish(topic, entry);
  }

  /** From here on, watches that begin in the past skip what was not to be kept: the watchers of that time have it. */
  forgetUnkept(): void {
    for (const log of this.#topics.values()) {
      log.entries = log.entries.filter((entry) => !this.#unkept.has(entry));
    }
    this.#unkept.clear();
  }

  /** A version for a change that `publish` is called with once it is durable. */
  reserve(): bigint {
    this.#version += 1n;
    return this.#version;
  }

  /** Continues from a version, unless the log has passed it. */
  skipTo(version: bigint): void {
    if (version > this.#version) this.#version = version;
  }

  /** Sends a change with a reserved version to the watchers. Versions of one kind must be in order. */
  publish(topic: string, entry: LogEntry): void {
    const log = this.#topic(topic);
    log.entries.push(entry);
    log.size += entry.size ?? 0;
    if (log.entries.length > this.#window * 1.25 || log.size > this.#maxBytes) this.#trim(log);
    for (const buffer of log.unselective) buffer.push(entry);
    if (log.selective.size === 0) return;
    const notified = new Set<WatchBuffer>();
    for (const key of entry.change.indexKeys?.() ?? log.selective.keys())
      for (const buffer of log.selective.get(key) ?? []) {
        if (notified.has(buffer)) continue;
        notified.add(buffer);
        buffer.push(entry);
      }
  }

  /** Requires all watchers of a kind to list again, after a change that no events express. */
  expire(topic: string): void {
    const log = this.#topic(topic);
    log.entries.length = 0;
    log.size = 0;
    log.dropped = this.reserve();
    this.#journal?.forget(topic, log.dropped);
    for (const buffer of log.unselective) buffer.overflow();
    for (const buffers of log.selective.values()) for (const buffer of buffers) buffer.overflow();
  }

  /** Follows the changes of one kind; the contract is that of `Storage.watch`. */
  async *follow<T extends KubernetesObject>(topic: string, options: FollowOptions<T>): AsyncGenerator<WatchEvent<T>> {
    const log = this.#topic(topic);
    const from = this.#checked(log, topic, options.resourceVersion);
    const buffer = new WatchBuffer(this.#buffer, this.#maxBytes);
    const subscribers = subscribersOf(log, options.indexKey);
    subscribers.add(buffer);
    // Entries in memory are copied now, so that trimming cannot remove them while the watcher reads.
    const kept = log.entries.slice(firstAfter(log.entries, from));
    const dropped = log.dropped;
    const end = () => buffer.wake();
    options.signal.addEventListener('abort', end);
    const over = () => options.signal.aborted || this.#closed;
    try {
      for (const entry of this.#past<T>(topic, from, dropped, kept as LogEntry<T>[])) {
        if (over()) return;
        const event = eventOf(entry, options.selects);
        if (event !== undefined) yield event;
      }
      while (!over()) {
        const entry = buffer.shift() as LogEntry<T> | undefined;
        if (entry === undefined) {
          const woken = await buffer.filled(this.#clock, this.#bookmarkInterval);
          // No event of this kind waits, so the watcher has reached the version of the whole log.
          if (!woken && buffer.empty && !over()) yield { type: 'BOOKMARK', resourceVersion: this.version };
          continue;
        }
        const event = eventOf(entry, options.selects);
        if (event !== undefined) yield event;
      }
    } finally {
      options.signal.removeEventListener('abort', end);
      subscribers.delete(buffer);
      if (subscribers.size === 0 && options.indexKey !== undefined) log.selective.delete(options.indexKey);
    }
  }

  /** Ends all watches. */
  close(): void {
    this.#closed = true;
    for (const log of this.#topics.values()) {
      for (const buffer of log.unselective) buffer.wake();
      for (const buffers of log.selective.values()) for (const buffer of buffers) buffer.wake();
    }
  }

  /** In steps, since removing from the front of an array costs as much as the array is long. */
  #trim(log: Topic): void {
    let surplus = Math.max(0, log.entries.length - this.#window);
    let size = log.size;
    for (const [place, entry] of log.entries.entries()) {
      if (place >= surplus && size <= this.#maxBytes * 0.75) break;
      size -= entry.size ?? 0;
      surplus = Math.max(surplus, place + 1);
    }
    const removed = log.entries.splice(0, surplus);
    log.size = size;
    log.dropped = removed.at(-1)?.version ?? log.dropped;
  }

  #topic(name: string): Topic {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = { entries: [], size: 0, dropped: this.#start, unselective: new Set(), selective: new Map() };
      this.#topics.set(name, topic);
    }
    return topic;
  }

  /** The version that a watcher starts from, if the log reaches back so far. */
  #checked(log: Topic, topic: string, resourceVersion: string): bigint {
    if (!/^\d{1,19}$/.test(resourceVersion)) throw expired('the resourceVersion is not from this log');
    const version = BigInt(resourceVersion);
    if (version > this.#version) throw expired('the resourceVersion is not from this log');
    if (version < this.#floor(log, topic)) throw expired('the resourceVersion is too old');
    return version;
  }

  #floor(log: Topic, topic: string): bigint {
    const journaled = this.#journal?.floor(topic);
    return journaled !== undefined && journaled < log.dropped ? journaled : log.dropped;
  }

  /**
   * Yields the changes after a version up to now: from the journal those that are no longer in memory, then those in
   * memory.
   */
  *#past<T extends KubernetesObject>(
    topic: string,
    from: bigint,
    dropped: bigint,
    kept: readonly LogEntry<T>[],
  ): Generator<LogEntry<T>> {
    let reached = from;
    while (this.#journal !== undefined && reached < dropped) {
      if (reached < this.#journal.floor(topic)) throw expired('the watch fell behind the events that are kept');
      const page = this.#journal.read(topic, reached, dropped, JOURNAL_PAGE_ENTRIES) as LogEntry<T>[];
      yield* page;
      reached = page.length < JOURNAL_PAGE_ENTRIES ? dropped : (page.at(-1)?.version ?? dropped);
    }
    yield* kept;
  }
}

function subscribersOf(log: Topic, indexKey: IndexKey | undefined): Set<WatchBuffer> {
  if (indexKey === undefined) return log.unselective;
  let subscribers = log.selective.get(indexKey);
  if (subscribers === undefined) {
    subscribers = new Set();
    log.selective.set(indexKey, subscribers);
  }
  return subscribers;
}

/** The place of the first entry after a version. */
function firstAfter(entries: readonly LogEntry[], version: bigint): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && entry.version <= version) low = middle + 1;
    else high = middle;
  }
  return low;
}

function expired(why: string): SluiceError {
  return new SluiceError('Expired', `${why}; list again and watch from there`);
}

/** Events that were made already, so that all watchers of a change get the very same ones. */
const eventCache = new WeakMap<LoggedChange, Map<string, WatchEvent<KubernetesObject>>>();

/** Returns the event of a change for the watcher of a selection; undefined if there is none. */
function eventOf<T extends KubernetesObject>(
  entry: LogEntry<T>,
  selects: (object: Stored<T>) => boolean,
): WatchEvent<T> | undefined {
  const { before, after } = entry.change;
  const was = before !== undefined && selects(before);
  const is = after !== undefined && selects(after);
  if (!was && !is) return undefined;
  const type = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
  let made = eventCache.get(entry.change);
  if (made === undefined) {
    made = new Map();
    eventCache.set(entry.change, made);
  }
  let event = made.get(type) as WatchEvent<T> | undefined;
  if (event === undefined) {
    event = Object.freeze({ type, object: is ? after : deletedAt(before as Stored<T>, entry.version) });
    made.set(type, event as WatchEvent<KubernetesObject>);
  }
  return event;
}

function deletedAt<T extends KubernetesObject>(last: Stored<T>, version: bigint): Stored<T> {
  const metadata = Object.freeze({ ...last.metadata, resourceVersion: String(version) });
  return Object.freeze({ ...last, metadata });
}
