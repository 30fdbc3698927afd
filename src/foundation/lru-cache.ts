export interface LruCacheOptions<Key, Value> {
  /** Total of the sizes given to `set`, in the unit of the caller, mostly bytes. Default: no bound. */
  readonly maxSize?: number;
  /** Default: no bound. */
  readonly maxEntries?: number;
  /** Called with each entry that is dropped because of a bound. */
  readonly onEvict?: (key: Key, value: Value) => void;
}

/**
 * Keeps the values that were used last, within a number and a total size. It is the one bounded cache of the program; a place that
 * forgets by other rules (by time, or with the object that a value belongs to) has its reason in its own file.
 */
export class LruCache<Key, Value> {
  readonly #options: LruCacheOptions<Key, Value>;
  /** The one that was used longest ago is first. */
  readonly #entries = new Map<Key, { readonly value: Value; readonly size: number }>();
  #size = 0;

  constructor(options: LruCacheOptions<Key, Value>) {
    this.#options = options;
  }

  /** Number of entries. */
  get count(): number {
    return this.#entries.size;
  }

  /** Total of the sizes. */
  get size(): number {
    return this.#size;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** The value of a key, which counts as used by that. */
  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** The value of a key, which does not count as used by that. */
  peek(key: Key): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  /**
   * Stores a value, replacing an existing one of the key. Evicts other values until the bounds are met, and this one if it alone is
   * too large.
   */
  set(key: Key, value: Value, size = 0): void {
    this.delete(key);
    this.#entries.set(key, { value, size });
    this.#size += size;
    const { maxSize = Number.POSITIVE_INFINITY, maxEntries = Number.POSITIVE_INFINITY, onEvict } = this.#options;
    for (const [oldest, entry] of this.#entries) {
      if (this.#size <= maxSize && this.#entries.size <= maxEntries) break;
      this.delete(oldest);
      onEvict?.(oldest, entry.value);
    }
  }

  delete(key: Key): boolean {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }
}
