/** New texts are written one after the other into blocks; few enough into one that what is still in use keeps little else. */
const BLOCK = 16 * 1024;
let block = Buffer.alloc(0);
let used = 0;

/**
 * A value stored as the bytes of its JSON, a quarter of the size of the objects and outside of the garbage-collected heap. It is
 * parsed for each reader: most of tens of thousands are never read.
 */
export class LazyJson<Value extends object> {
  readonly #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;
  /** The value that the last reader may still use. */
  #made: WeakRef<Value> | undefined;

  /** The JSON is in one line. It stays a part of `bytes`, which must not change. */
  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  static of<Value extends object>(value: Value): LazyJson<Value> {
    return LazyJson.#write(JSON.stringify(value));
  }

  /**
   * For a value that consists of nothing but JSON and that no code changes: readers get the value itself until it is collected, which saves
   * parsing it while a repository is opened.
   */
  static ofJson<Value extends object>(value: Value): LazyJson<Value> {
    const json = LazyJson.#write<Value>(JSON.stringify(value));
    json.#made = new WeakRef(value);
    return json;
  }

  static #write<Value extends object>(text: string): LazyJson<Value> {
    const length = Buffer.byteLength(text);
    if (length > BLOCK / 4) return new LazyJson(Buffer.from(text), 0, length);
    if (used + length > block.length) {
      block = Buffer.allocUnsafeSlow(BLOCK);
      used = 0;
    }
    const start = used;
    used += block.write(text, start);
    return new LazyJson(block, start, used);
  }

  /** Returns the same object to all concurrent readers. */
  get value(): Value {
    let value = this.#made?.deref();
    if (value === undefined) {
      value = JSON.parse(this.text) as Value;
      this.#made = new WeakRef(value);
    }
    return value;
  }

  get text(): string {
    return this.#bytes.toString('utf8', this.#start, this.#end);
  }
}
