import type { Clock } from '../../foundation/clock.ts';
import type { Oid } from '../git-repository.ts';
import type { NewObject } from './object-source.ts';

/** What may wait in memory. Above either, what waits is brought to the disk early, so that imports of any size work. */
const MOST_BYTES = 16 * 1024 * 1024;
const MOST_OBJECTS = 10_000;
/**
 * What stays readable after it reached the disk, because what was written is read again at once; and so long, in milliseconds, at
 * most: hundreds of repositories may be open, and few of them are written to.
 */
const RECENT_MS = 60_000;
const RECENT_BYTES = 8 * 1024 * 1024;
const LARGEST_RECENT = 256 * 1024;
/** What an object takes beside its data. */
const OVERHEAD = 200;
/**
 * So long, in milliseconds, an object that this process brought to the disk counts as there without another look. Far below the age
 * at which Git lets go of what nothing refers to.
 */
const FRESH_MS = 60_000;

interface Recent {
  readonly object: NewObject;
  /** When it reached the disk. */
  readonly at: number;
}

/**
 * Written objects that wait in memory for the transaction that needs them, and small ones that reached the disk lately. What waits
 * is forgotten only when it is on disk, or by `clear`.
 */
export class StagedObjects {
  readonly #clock: Clock;
  /** In the order of writing: what an object refers to stands before it. */
  readonly #staged = new Map<Oid, NewObject>();
  #stagedBytes = 0;
  /** The one that was not used for the longest time first. */
  readonly #recent = new Map<Oid, Recent>();
  #recentBytes = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if nothing more should be added before what waits is on disk. */
  get full(): boolean {
    return this.#stagedBytes > MOST_BYTES || this.#staged.size > MOST_OBJECTS;
  }

  /** Adds objects, those that others refer to first. The data is copied: it belongs to the caller. */
  add(objects: readonly NewObject[]): void {
    for (const { oid, type, data } of objects) {
      if (this.#staged.has(oid) || this.#isFresh(oid)) continue;
      // A buffer of its own: a slice of a shared one would keep all of that alive.
      const object = { oid, type, data: new Uint8Array(data) };
      this.#staged.set(oid, object);
      this.#stagedBytes += cost(object);
    }
  }

  /** An object that waits or reached the disk lately. Its data must not be changed. */
  get(oid: Oid): NewObject | undefined {
    const staged = this.#staged.get(oid);
    if (staged !== undefined) return staged;
    const recent = this.#recent.get(oid);
    if (recent === undefined) return undefined;
    this.#recent.delete(oid);
    this.#recent.set(oid, recent);
    return recent.object;
  }

  /** All that waits, those that others refer to first. */
  waiting(): NewObject[] {
    return [...this.#staged.values()];
  }

  /** Takes note that objects have reached the disk. */
  onDisk(objects: readonly NewObject[]): void {
    const at = this.#clock.now();
    for (const object of objects) {
      if (this.#staged.delete(object.oid)) this.#stagedBytes -= cost(object);
      if (object.data.length <= LARGEST_RECENT) this.#remember(object, at);
    }
    this.#sweepLater();
  }

  /** Forgets everything, also what waits. */
  clear(): void {
    this.#staged.clear();
    this.#stagedBytes = 0;
    this.#recent.clear();
    this.#recentBytes = 0;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #sweepLater(): void {
    if (this.#recent.size === 0) return;
    this.#cancelSweep ??= this.#clock.schedule(RECENT_MS, () => {
      this.#cancelSweep = undefined;
      const now = this.#clock.now();
      for (const [oid, { at }] of this.#recent) if (now - at >= RECENT_MS || now < at) this.#forget(oid);
      this.#sweepLater();
    });
  }

  #remember(object: NewObject, at: number): void {
    this.#forget(object.oid);
    this.#recent.set(object.oid, { object, at });
    this.#recentBytes += cost(object);
    for (const oid of this.#recent.keys()) {
      if (this.#recentBytes <= RECENT_BYTES) return;
      this.#forget(oid);
    }
  }

  #forget(oid: Oid): void {
    const recent = this.#recent.get(oid);
    if (recent === undefined) return;
    this.#recent.delete(oid);
    this.#recentBytes -= cost(recent.object);
  }

  #isFresh(oid: Oid): boolean {
    const recent = this.#recent.get(oid);
    if (recent === undefined) return false;
    const age = this.#clock.now() - recent.at;
    return age >= 0 && age < FRESH_MS;
  }
}

function cost({ data }: NewObject): number {
  return data.length + OVERHEAD;
}
