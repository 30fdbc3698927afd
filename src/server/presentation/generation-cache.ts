/**
 * Caches a value for each object, as long as the object is referenced: a value that was not read while values of twice `budget` in weight
 * were computed is dropped. It is no `LruCache`, since its keys are objects that it must not keep alive.
 */
export class GenerationCache<Value> {
  readonly #budget: number;
  readonly #weigh: (value: Value) => number;
  #young = new WeakMap<object, Value>();
  #old = new WeakMap<object, Value>();
  #weight = 0;

  constructor(budget: number, weigh: (value: Value) => number) {
    this.#budget = budget;
    this.#weigh = weigh;
  }

  /** The cached value, without an effect on eviction. */
  peek(key: object): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  get<Key extends object>(key: Key, make: (key: Key) => Value): Value {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const value = this.#old.get(key) ?? make(key);
    this.#weight += this.#weigh(value);
    if (this.#weight > this.#budget) {
      this.#old = this.#young;
      this.#young = new WeakMap();
      this.#weight = this.#weigh(value);
    }
    this.#young.set(key, value);
    return value;
  }
}
