import type { ObjectKey } from '../../object/object.ts';
import { type IndexKey, nameOf, namespaceOf } from '../../watch/index-key.ts';
import { SortedEntries } from './sorted-entries.ts';

/** No name contains it, and it sorts before all characters of names. */
const SEPARATOR = '\u0000';
const AFTER_SEPARATOR = '\u0001';

/** The order of lists: by namespace, then name. */
export function sortKeyOf(key: ObjectKey): string {
  return `${key.namespace ?? ''}${SEPARATOR}${key.name}`;
}

/**
 * Entries of one kind in the order of lists, found by key and by index key. The cost of a list is proportional to the selected
 * entries, that of a write to the logarithm of all. Namespaces need no index, since the entries of one are adjacent.
 */
export class ObjectIndex<Entry> {
  readonly #keysOf: (entry: Entry) => readonly IndexKey[];
  /** By sort key. */
  readonly #entries = new Map<string, Entry>();
  readonly #sorted = new SortedEntries<Entry>();
  /** Sort keys; most index keys have one, which needs no set. */
  readonly #byKey = new Map<IndexKey, string | Set<string>>();
  /** Number of entries in each namespace. */
  readonly #namespaces = new Map<string, number>();

  /** `keysOf` returns by which labels and fields an entry is found, the same at each call. */
  constructor(keysOf: (entry: Entry) => readonly IndexKey[]) {
    this.#keysOf = keysOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: ObjectKey): Entry | undefined {
    return this.#entries.get(sortKeyOf(key));
  }

  set(key: ObjectKey, entry: Entry): void {
    const sortKey = sortKeyOf(key);
    const indexKeys = this.#keysOf(entry);
    const before = this.#entries.get(sortKey);
    if (before === undefined) this.#count(key, 1);
    else
      for (const indexKey of this.#keysOf(before)) if (!indexKeys.includes(indexKey)) this.#unlink(indexKey, sortKey);
    for (const indexKey of indexKeys) this.#link(indexKey, sortKey);
    this.#entries.set(sortKey, entry);
    this.#sorted.set(sortKey, entry);
  }

  delete(key: ObjectKey): void {
    const sortKey = sortKeyOf(key);
    const before = this.#entries.get(sortKey);
    if (before === undefined) return;
    for (const indexKey of this.#keysOf(before)) this.#unlink(indexKey, sortKey);
    this.#entries.delete(sortKey);
    this.#sorted.delete(sortKey);
    this.#count(key, -1);
  }

  /** All entries, or those under one key, in order. */
  select(indexKey?: IndexKey): Entry[] {
    if (indexKey === undefined) return this.#sorted.all();
    const namespace = namespaceOf(indexKey);
    if (namespace !== undefined) return this.#sorted.between(namespace + SEPARATOR, namespace + AFTER_SEPARATOR);
    const name = nameOf(indexKey);
    if (name !== undefined) {
      const namespaces = [...this.#namespaces.keys()].sort();
      return namespaces.flatMap((one) => this.#entries.get(sortKeyOf({ namespace: one, name })) ?? []);
    }
    const found = this.#byKey.get(indexKey) ?? [];
    const sortKeys = typeof found === 'string' ? [found] : [...found];
    // Sorting many entries is slower than skipping the others.
    const isMany = sortKeys.length * Math.log2(sortKeys.length) > this.#entries.size;
    if (isMany && found instanceof Set) return this.#sorted.among(found);
    return sortKeys.sort().flatMap((sortKey) => this.#entries.get(sortKey) ?? []);
  }

  /** All entries in no particular order. */
  values(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  #count({ namespace = '' }: ObjectKey, more: number): void {
    const count = (this.#namespaces.get(namespace) ?? 0) + more;
    if (count === 0) this.#namespaces.delete(namespace);
    else this.#namespaces.set(namespace, count);
  }

  #link(indexKey: IndexKey, sortKey: string): void {
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
