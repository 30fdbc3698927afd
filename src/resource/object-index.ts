import { type IndexKey, namespaceOf } from './index-key.ts';
import type { ObjectKey } from './object.ts';
import { SortedEntries } from './sorted-entries.ts';

interface Slot<Entry> {
  readonly entry: Entry;
  readonly indexKeys: readonly IndexKey[];
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
  /** By sort key. */
  readonly #slots = new Map<string, Slot<Entry>>();
  readonly #sorted = new SortedEntries<Entry>();
  /** Sort keys; most index keys have one, which needs no set. */
  readonly #byKey = new Map<IndexKey, string | Set<string>>();

  get size(): number {
    return this.#slots.size;
  }

  get(key: ObjectKey): Entry | undefined {
    return this.#slots.get(sortKeyOf(key))?.entry;
  }

  set(key: ObjectKey, entry: Entry, indexKeys: readonly IndexKey[]): void {
    const sortKey = sortKeyOf(key);
    for (const indexKey of this.#slots.get(sortKey)?.indexKeys ?? [])
      if (!indexKeys.includes(indexKey)) this.#unlink(indexKey, sortKey);
    for (const indexKey of indexKeys) this.#link(indexKey, sortKey);
    this.#slots.set(sortKey, { entry, indexKeys });
    this.#sorted.set(sortKey, entry);
  }

  delete(key: ObjectKey): void {
    const sortKey = sortKeyOf(key);
    for (const indexKey of this.#slots.get(sortKey)?.indexKeys ?? []) this.#unlink(indexKey, sortKey);
    this.#slots.delete(sortKey);
    this.#sorted.delete(sortKey);
  }

  /** All entries, or those under one key, in order. */
  select(indexKey?: IndexKey): Entry[] {
    if (indexKey === undefined) return this.#sorted.all();
    const namespace = namespaceOf(indexKey);
    if (namespace !== undefined) return this.#sorted.between(namespace + SEPARATOR, namespace + AFTER_SEPARATOR);
    const found = this.#byKey.get(indexKey) ?? [];
    const sortKeys = typeof found === 'string' ? [found] : [...found];
    // To sort many is slower than to pass over the others.
    const isMany = sortKeys.length * Math.log2(sortKeys.length) > this.#slots.size;
    if (isMany && found instanceof Set) return this.#sorted.among(found);
    return sortKeys.sort().flatMap((sortKey) => this.#slots.get(sortKey)?.entry ?? []);
  }

  /** All entries in no particular order. */
  *values(): IterableIterator<Entry> {
    for (const { entry } of this.#slots.values()) yield entry;
  }

  #link(indexKey: IndexKey, sortKey: string): void {
    if (namespaceOf(indexKey) !== undefined) return;
    const found = this.#byKey.get(indexKey);
    if (found === undefined) this.#byKey.set(indexKey, sortKey);
    else if (found instanceof Set) found.add(sortKey);
    else if (found !== sortKey) this.#byKey.set(indexKey, new Set([found, sortKey]));
  }

  #unlink(indexKey: IndexKey, sortKey: string): void {
    const found = this.#byKey.get(indexKey);
    if (found === sortKey) this.#byKey.delete(indexKey);
    else if (found instanceof Set && found.delete(sortKey) && found.size === 0) this.#byKey.delete(indexKey);
  }
}
