import type { IndexKey } from './index-key.ts';
import type { ObjectKey } from './object.ts';

interface Slot<Entry> {
  readonly entry: Entry;
  readonly indexKeys: readonly IndexKey[];
}

/** The order of lists: by namespace, then name. No name holds the separator. */
export function sortKeyOf(key: ObjectKey): string {
  return `${key.namespace ?? ''}\u0000${key.name}`;
}

/**
 * Entries of one kind in the order of lists, found by key and by index key. A list costs what it selects, a write the logarithm of
 * what there is.
 */
export class ObjectIndex<Entry> {
  readonly #slots = new Map<string, Slot<Entry>>();
  readonly #byKey = new Map<IndexKey, Set<string>>();
  /** Undefined until somebody wants the order, so that the first load sorts once. */
  #sorted: string[] | undefined;

  get size(): number {
    return this.#slots.size;
  }

  get(key: ObjectKey): Entry | undefined {
    return this.#slots.get(sortKeyOf(key))?.entry;
  }

  set(key: ObjectKey, entry: Entry, indexKeys: readonly IndexKey[]): void {
    const text = sortKeyOf(key);
    const old = this.#slots.get(text);
    if (old === undefined) this.#insert(text);
    else this.#unlink(text, old, new Set(indexKeys));
    for (const indexKey of indexKeys) {
      const found = this.#byKey.get(indexKey);
      if (found === undefined) this.#byKey.set(indexKey, new Set([text]));
      else found.add(text);
    }
    this.#slots.set(text, { entry, indexKeys });
  }

  delete(key: ObjectKey): void {
    const text = sortKeyOf(key);
    const old = this.#slots.get(text);
    if (old === undefined) return;
    this.#unlink(text, old);
    this.#slots.delete(text);
    if (this.#sorted === undefined) return;
    const at = lowerBound(this.#sorted, text);
    if (this.#sorted[at] === text) this.#sorted.splice(at, 1);
  }

  /** All entries, or those under one key, in order. */
  select(indexKey?: IndexKey): Entry[] {
    const keys = indexKey === undefined ? this.#order() : [...(this.#byKey.get(indexKey) ?? [])].sort();
    const entries: Entry[] = [];
    for (const key of keys) {
      const slot = this.#slots.get(key);
      if (slot !== undefined) entries.push(slot.entry);
    }
    return entries;
  }

  /** All entries in no particular order. */
  *values(): IterableIterator<Entry> {
    for (const { entry } of this.#slots.values()) yield entry;
  }

  #order(): readonly string[] {
    this.#sorted ??= [...this.#slots.keys()].sort();
    return this.#sorted;
  }

  #insert(text: string): void {
    if (this.#sorted !== undefined) this.#sorted.splice(lowerBound(this.#sorted, text), 0, text);
  }

  #unlink(text: string, { indexKeys }: Slot<Entry>, kept?: ReadonlySet<IndexKey>): void {
    for (const indexKey of indexKeys) {
      if (kept?.has(indexKey) === true) continue;
      const found = this.#byKey.get(indexKey);
      found?.delete(text);
      if (found?.size === 0) this.#byKey.delete(indexKey);
    }
  }
}

/** The place of the first element that is not less. */
function lowerBound(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
