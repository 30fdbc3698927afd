import { type IndexKey, namespaceOf } from './index-key.ts';
import type { ObjectKey } from './object.ts';

interface Slot<Entry> {
  readonly sortKey: string;
  entry: Entry;
  indexKeys: readonly IndexKey[];
}

/** Slots by sort key, and their entries at the same places, so that a part of them is cut out without a look at each. */
interface Order<Entry> {
  readonly slots: Slot<Entry>[];
  readonly entries: Entry[];
}

/** No name holds it, and it comes before all that names hold. */
const SEPARATOR = '\u0000';
const AFTER_SEPARATOR = '\u0001';

/** The order of lists: by namespace, then name. */
export function sortKeyOf(key: ObjectKey): string {
  return `${key.namespace ?? ''}${SEPARATOR}${key.name}`;
}

/**
 * Entries of one kind in the order of lists, found by key and by index key. A list costs what it selects, a write the logarithm of
 * what there is. Namespaces need no index of their own: what is in one stands together.
 */
export class ObjectIndex<Entry> {
  readonly #slots = new Map<string, Slot<Entry>>();
  /** Most keys have one entry, which needs no set. */
  readonly #byKey = new Map<IndexKey, Slot<Entry> | Set<Slot<Entry>>>();
  /** Undefined until somebody wants the order, so that the first load sorts once. */
  #order: Order<Entry> | undefined;

  get size(): number {
    return this.#slots.size;
  }

  get(key: ObjectKey): Entry | undefined {
    return this.#slots.get(sortKeyOf(key))?.entry;
  }

  set(key: ObjectKey, entry: Entry, indexKeys: readonly IndexKey[]): void {
    const sortKey = sortKeyOf(key);
    const old = this.#slots.get(sortKey);
    if (old === undefined) {
      const slot = { sortKey, entry, indexKeys };
      this.#slots.set(sortKey, slot);
      const place = this.#placeOf(sortKey);
      this.#order?.slots.splice(place, 0, slot);
      this.#order?.entries.splice(place, 0, entry);
      for (const indexKey of indexKeys) this.#link(indexKey, slot);
      return;
    }
    for (const indexKey of old.indexKeys) if (!indexKeys.includes(indexKey)) this.#unlink(indexKey, old);
    for (const indexKey of indexKeys) this.#link(indexKey, old);
    old.entry = entry;
    old.indexKeys = indexKeys;
    if (this.#order !== undefined) this.#order.entries[this.#placeOf(sortKey)] = entry;
  }

  delete(key: ObjectKey): void {
    const sortKey = sortKeyOf(key);
    const old = this.#slots.get(sortKey);
    if (old === undefined) return;
    for (const indexKey of old.indexKeys) this.#unlink(indexKey, old);
    this.#slots.delete(sortKey);
    const place = this.#placeOf(sortKey);
    this.#order?.slots.splice(place, 1);
    this.#order?.entries.splice(place, 1);
  }

  /** All entries, or those under one key, in order. */
  select(indexKey?: IndexKey): Entry[] {
    const { slots, entries } = this.#inOrder();
    if (indexKey === undefined) return entries.slice();
    const namespace = namespaceOf(indexKey);
    if (namespace !== undefined)
      return entries.slice(lowerBound(slots, namespace + SEPARATOR), lowerBound(slots, namespace + AFTER_SEPARATOR));
    const found = this.#byKey.get(indexKey);
    if (found === undefined) return [];
    if (!(found instanceof Set)) return [found.entry];
    // To sort many is slower than to pass over the others.
    const many = found.size * Math.log2(found.size) > slots.length;
    const inOrder = many ? slots.filter((slot) => found.has(slot)) : [...found].sort(bySortKey);
    return inOrder.map(({ entry }) => entry);
  }

  /** All entries in no particular order. */
  *values(): IterableIterator<Entry> {
    for (const { entry } of this.#slots.values()) yield entry;
  }

  #inOrder(): Order<Entry> {
    if (this.#order === undefined) {
      const slots = [...this.#slots.values()].sort(bySortKey);
      this.#order = { slots, entries: slots.map(({ entry }) => entry) };
    }
    return this.#order;
  }

  #placeOf(sortKey: string): number {
    return this.#order === undefined ? 0 : lowerBound(this.#order.slots, sortKey);
  }

  #link(indexKey: IndexKey, slot: Slot<Entry>): void {
    if (namespaceOf(indexKey) !== undefined) return;
    const found = this.#byKey.get(indexKey);
    if (found === undefined) this.#byKey.set(indexKey, slot);
    else if (found instanceof Set) found.add(slot);
    else if (found !== slot) this.#byKey.set(indexKey, new Set([found, slot]));
  }

  #unlink(indexKey: IndexKey, slot: Slot<Entry>): void {
    const found = this.#byKey.get(indexKey);
    if (found === slot) this.#byKey.delete(indexKey);
    else if (found instanceof Set && found.delete(slot) && found.size === 0) this.#byKey.delete(indexKey);
  }
}

function bySortKey(a: Slot<unknown>, b: Slot<unknown>): number {
  if (a.sortKey === b.sortKey) return 0;
  return a.sortKey < b.sortKey ? -1 : 1;
}

/** The place of the first slot whose key is not less. */
function lowerBound(sorted: readonly Slot<unknown>[], sortKey: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle]?.sortKey ?? '') < sortKey) low = middle + 1;
    else high = middle;
  }
  return low;
}
