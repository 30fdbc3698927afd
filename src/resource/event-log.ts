import type { Clock } from '../foundation/clock.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import type { KubernetesObject, Stored } from './object.ts';
import type { WatchEvent } from './storage.ts';

/** A change as the log keeps it: what the object was before and what it is after; one of them may be missing. */
export interface LoggedChange<T extends KubernetesObject = KubernetesObject> {
  readonly before: Stored<T> | undefined;
  readonly after: Stored<T> | undefined;
}

export interface EventLogOptions {
  readonly clock: Clock;
  /** How many events of one kind are kept; a watcher that is further behind must list again. Default 10,000. */
  readonly window?: number;
  /** A watch gets a BOOKMARK after this time without an event, in milliseconds. Default 15,000. */
  readonly bookmarkInterval?: number;
  /** The version to start from. Default 0. Versions are decimal numbers that only rise. */
  readonly start?: bigint;
}

export interface FollowOptions<T extends KubernetesObject> {
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
  readonly selects: (object: Stored<T>) => boolean;
}

interface Entry {
  readonly version: bigint;
  readonly change: LoggedChange;
}

/** The events of one kind. Entries are numbered from the first ever written; `entries[0]` has the number `dropped`. */
interface Topic {
  readonly entries: Entry[];
  dropped: number;
  /** The version of the newest entry that was dropped. */
  droppedVersion: bigint;
  readonly sleepers: Set<() => void>;
}

/**
 * The changes of several kinds in one order: one version rises over all of them. Each kind has its own bounded window,
 * so that a busy kind never costs the watchers of a quiet one their place. A watcher is a position in the window, not a
 * queue of its own: a slow one costs nothing, and is told Expired once the window has moved past it.
 */
export class EventLog {
  readonly #clock: Clock;
  readonly #window: number;
  readonly #bookmarkInterval: number;
  readonly #start: bigint;
  readonly #topics = new Map<string, Topic>();
  #version: bigint;
  #closed = false;

  constructor(options: EventLogOptions) {
    this.#clock = options.clock;
    this.#window = Math.max(1, options.window ?? 10_000);
    this.#bookmarkInterval = options.bookmarkInterval ?? 15_000;
    this.#start = options.start ?? 0n;
    this.#version = this.#start;
  }

  /** The version of the last change of any kind. */
  get version(): string {
    return String(this.#version);
  }

  /**
   * Adds one change. `make` gets the version that the change has, and returns what to log; if it throws, nothing is
   * logged and no version is used up. `topic` names the kind.
   */
  append<T extends KubernetesObject>(topic: string, make: (resourceVersion: string) => LoggedChange<T>): void {
    const version = this.#version + 1n;
    const change = make(String(version));
    this.#version = version;
    const log = this.#topic(topic);
    log.entries.push({ version, change });
    // Trimmed in steps, since removing from the front of an array costs as much as the array is long.
    if (log.entries.length > this.#window * 1.25) {
      const removed = log.entries.splice(0, log.entries.length - this.#window);
      log.dropped += removed.length;
      log.droppedVersion = removed.at(-1)?.version ?? log.droppedVersion;
    }
    wake(log);
  }

  /** Follows the changes of one kind; the contract is that of `Storage.watch`. */
  async *follow<T extends KubernetesObject>(topic: string, options: FollowOptions<T>): AsyncGenerator<WatchEvent<T>> {
    const log = this.#topic(topic);
    let position = this.#positionAfter(log, options.resourceVersion);
    while (!options.signal.aborted && !this.#closed) {
      if (position < log.dropped) throw expired('the watch fell behind the window of kept events');
      const entry = log.entries[position - log.dropped];
      if (entry === undefined) {
        const slept = await this.#sleep(log, options.signal);
        // Nothing of this kind is newer, so the version of the whole log is reached.
        if (slept === 'timeout' && log.dropped + log.entries.length === position)
          yield { type: 'BOOKMARK', resourceVersion: this.version };
        continue;
      }
      position += 1;
      const event = eventOf(entry as { version: bigint; change: LoggedChange<T> }, options.selects);
      if (event !== undefined) yield event;
    }
  }

  /** Ends all watches. */
  close(): void {
    this.#closed = true;
    for (const log of this.#topics.values()) wake(log);
  }

  #topic(name: string): Topic {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = { entries: [], dropped: 0, droppedVersion: this.#start, sleepers: new Set() };
      this.#topics.set(name, topic);
    }
    return topic;
  }

  /** The number of the first entry after a version. */
  #positionAfter(log: Topic, resourceVersion: string): number {
    if (!/^\d{1,20}$/.test(resourceVersion)) throw expired('the resourceVersion is not from this log');
    const version = BigInt(resourceVersion);
    if (version > this.#version) throw expired('the resourceVersion is not from this log');
    if (version < log.droppedVersion) throw expired('the resourceVersion is too old');
    let low = 0;
    let high = log.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = log.entries[middle];
      if (entry !== undefined && entry.version <= version) low = middle + 1;
      else high = middle;
    }
    return log.dropped + low;
  }

  /** Until something was logged for the topic, the log was closed, the signal aborted, or a bookmark is due. */
  #sleep(log: Topic, signal: AbortSignal): Promise<'woken' | 'timeout'> {
    return new Promise((resolve) => {
      const end = (why: 'woken' | 'timeout') => {
        log.sleepers.delete(wakeUp);
        signal.removeEventListener('abort', wakeUp);
        cancel();
        resolve(why);
      };
      const wakeUp = () => end('woken');
      const cancel = this.#clock.schedule(this.#bookmarkInterval, () => end('timeout'));
      log.sleepers.add(wakeUp);
      signal.addEventListener('abort', wakeUp);
    });
  }
}

function wake(log: Topic): void {
  for (const sleeper of [...log.sleepers]) sleeper();
}

function expired(why: string): SluiceError {
  return new SluiceError('Expired', `${why}; list again and watch from there`);
}

/** What a watcher of a selection sees of a change; undefined if nothing. */
function eventOf<T extends KubernetesObject>(
  entry: { readonly version: bigint; readonly change: LoggedChange<T> },
  selects: (object: Stored<T>) => boolean,
): WatchEvent<T> | undefined {
  const { before, after } = entry.change;
  const was = before !== undefined && selects(before);
  const is = after !== undefined && selects(after);
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: after };
  if (!was) return undefined;
  const metadata = Object.freeze({ ...before.metadata, resourceVersion: String(entry.version) });
  return { type: 'DELETED', object: Object.freeze({ ...before, metadata }) };
}
