import { TargetMemory } from './target-memory.ts';

/**
 * Bytes that the memories of all targets may use: those of 25 targets of 6,000 packages. Beyond it a target is read from its branch and
 * evaluated as a whole at each delivery.
 */
const MAX_BYTES = 384 * 1024 * 1024;
/** A memory keeps its place as long as it was used within so many deliveries of each target. */
const KEPT_ROUNDS = 2;

interface Kept {
  /** Undefined while a delivery uses it; its place is reserved. */
  memory: TargetMemory | undefined;
  readonly bytes: number;
  lastUse: number;
}

/**
 * The memories of the targets. A publication and the periodic check use all of them in turn: a cache that keeps the ones used last would
 * drop each one just before its next use as soon as the targets together exceed the bound. So a memory that has a place keeps it, and
 * another one gets a place only if those in it have not been used for some rounds.
 */
export class TargetMemories {
  readonly #maxBytes: number;
  /** The one that was used longest ago is first. */
  readonly #kept = new Map<string, Kept>();
  /** All targets that are delivered. */
  readonly #targets = new Set<string>();
  #bytes = 0;
  #uses = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The memory of a target, which one caller at a time uses. */
  take(key: string): TargetMemory {
    this.#uses += 1;
    this.#targets.add(key);
    const kept = this.#kept.get(key);
    if (kept === undefined) return new TargetMemory();
    const { memory = new TargetMemory() } = kept;
    kept.memory = undefined;
    kept.lastUse = this.#uses;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    return memory;
  }

  /** Keeps a memory, unless a change of it failed or there is no room. */
  put(key: string, memory: TargetMemory): void {
    memory.wanted.release();
    this.#drop(key);
    if (!memory.isUsable) return;
    const { bytes } = memory;
    if (!this.#makeRoom(bytes)) return;
    this.#kept.set(key, { memory, bytes, lastUse: this.#uses });
    this.#bytes += bytes;
  }

  forget(key: string): void {
    this.#drop(key);
    this.#targets.delete(key);
  }

  #drop(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }

  /** Drops memories that are not used any more, if that gives enough room; none otherwise. */
  #makeRoom(bytes: number): boolean {
    const unused: string[] = [];
    let free = this.#maxBytes - this.#bytes;
    for (const [key, kept] of this.#kept) {
      if (free >= bytes || this.#uses - kept.lastUse <= KEPT_ROUNDS * this.#targets.size) break;
      unused.push(key);
      free += kept.bytes;
    }
    if (free < bytes) return false;
    for (const key of unused) this.#drop(key);
    return true;
  }
}
