/**
 * Remembers what was made of an object, for as long as the object lives and at most `budget` weights old: values that were not
 * asked for while two budgets were made anew are forgotten. Costs nothing for objects that nobody holds any more.
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

  /** What is remembered; nothing changes by that. */
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
