import type { Clock } from '../../foundation/time/clock.ts';
import type { Oid } from '../git-repository.ts';
import type { NewObject } from './object-source.ts';

/**
 * Maximum amount of data that is staged in memory. Above it, objects are written to the disk early, so that imports of
 * any size work.
 */
const MAX_STAGED_BYTES = 16 * 1024 * 1024;
const MAX_STAGED_OBJECTS = 10_000;
/**
 * Objects stay readable here after they reached the disk, because they are often read again at once; and no longer than this, since
 * hundreds of repositories may be open, and few of them are written to.
 */
const RECENT_MS = 60_000;
const MAX_RECENT_BYTES = 8 * 1024 * 1024;
const MAX_RECENT_OBJECT_BYTES = 256 * 1024;
/** Memory of an object beside its data. */
const OVERHEAD_BYTES = 200;
/**
 * For this time an object that this process wrote to the disk counts as present without a check. Far below the age
 * at which Git removes unreachable objects.
 */
const FRESH_MS = 60_000;

interface Recent {
  readonly object: NewObject;
  /** Time at which it was written to the disk. */
  readonly at: number;
}

/**
 * Written objects that wait in memory for the transaction that needs them, and small ones that reached the disk lately. What waits
 * is forgotten only when it is on disk, or by `clear`.
 */
export class StagedObjects {
  readonly #clock: Clock;
  /** In the order of writing: what an object refers to comes before it. */
  readonly #staged = new Map<Oid, NewObject>();
  #stagedBytes = 0;
  /** The one that was not used for the longest time first. */
  readonly #recent = new Map<Oid, Recent>();
  #recentBytes = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if staged objects should be written before more are added. */
  get full(): boolean {
    return this.#stagedBytes > MAX_STAGED_BYTES || this.#staged.size > MAX_STAGED_OBJECTS;
  }

  /** Adds objects, referenced objects before those that refer to them. Copies the data, which belongs to the caller. */
  add(objects: readonly NewObject[]): void {
    for (const { oid, type, data } of objects) {
      if (this.#staged.has(oid) || this.#isFresh(oid)) continue;
      // A separate buffer: a slice of a shared one would keep the whole buffer alive.
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

  /** Returns all objects that are not on disk yet, referenced objects before those that refer to them. */
  waiting(): NewObject[] {
    return [...this.#staged.values()];
  }

  /** Notes that objects have reached the disk. */
  onDisk(objects: readonly NewObject[]): void {
    const at = this.#clock.monotonic();
    for (const object of objects) {
      if (this.#staged.delete(object.oid)) this.#stagedBytes -= cost(object);
      if (object.data.length <= MAX_RECENT_OBJECT_BYTES) this.#remember(object, at);
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
      const now = this.#clock.monotonic();
      for (const [oid, { at }] of this.#recent) if (now - at >= RECENT_MS) this.#forget(oid);
      this.#sweepLater();
    });
  }

  #remember(object: NewObject, at: number): void {
    this.#forget(object.oid);
    this.#recent.set(object.oid, { object, at });
    this.#recentBytes += cost(object);
    for (const oid of this.#recent.keys()) {
      if (this.#recentBytes <= MAX_RECENT_BYTES) return;
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
    return recent !== undefined && this.#clock.monotonic() - recent.at < FRESH_MS;
  }
}

function cost({ data }: NewObject): number {
  return data.length + OVERHEAD_BYTES;
}
