import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { LogEntry } from './log-entry.ts';

/** The events that wait for one watcher: a bounded queue of references. */
export class WatchBuffer {
  readonly #limit: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #entries: LogEntry[] = [];
  #position = 0;
  #overflowed = false;
  #wake: (() => void) | undefined;

  /** `limit` in entries. */
  constructor(limit: number, maxBytes: number) {
    this.#limit = limit;
    this.#maxBytes = maxBytes;
  }

  get empty(): boolean {
    return this.#position >= this.#entries.length && !this.#overflowed;
  }

  push(entry: LogEntry): void {
    if (this.#overflowed) return;
    // One entry always has its place, however large it is.
    const isFull = this.#bytes > this.#maxBytes || this.#entries.length - this.#position >= this.#limit;
    if (isFull) {
      this.overflow();
      return;
    }
    this.#entries.push(entry);
    this.#bytes += entry.size ?? 0;
    this.wake();
  }

  /** Drops everything; the watch ends with Expired. */
  overflow(): void {
    this.#overflowed = true;
    this.#entries = [];
    this.#position = 0;
    this.wake();
  }

  /** The next entry; undefined if there is none yet. Throws Expired once entries were dropped. */
  shift(): LogEntry | undefined {
    if (this.#overflowed)
      throw new SluiceError('Expired', 'the watch fell too far behind; list again and watch from there');
    const entry = this.#entries[this.#position];
    if (entry === undefined) return undefined;
    this.#position += 1;
    this.#bytes -= entry.size ?? 0;
    if (this.#position === this.#entries.length) {
      this.#entries = [];
      this.#position = 0;
    }
    return entry;
  }

  /** Ends a wait. */
  wake(): void {
    this.#wake?.();
  }

  /** Waits for an entry or `wake`: true; or for so many milliseconds without either: false. */
  filled(clock: Clock, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (woken: boolean) => {
        this.#wake = undefined;
        cancel();
        resolve(woken);
      };
      const cancel = clock.schedule(timeoutMs, () => done(false));
      this.#wake = () => done(true);
    });
  }
}
