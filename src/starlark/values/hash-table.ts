import { fail } from '../machine/machine.ts';
import { Builtin, StarlarkFunction } from './callable.ts';
import { Float } from './float.ts';
import { intOfFloat } from './integer.ts';
import { Tuple } from './sequence.ts';
import { Struct } from './struct.ts';
import { StarlarkObject, typeName, type Value } from './value.ts';

/** Values that a JavaScript Map compares as Starlark does. */
type HashKey = null | boolean | number | bigint | string | StarlarkFunction | Builtin;

/** Length of the key of a tuple or struct, which is made of all its elements. */
const MAX_KEY_CHARACTERS = 4096;

function hashKey(value: Value): HashKey {
  // Composed keys begin with this character; a text that does too gets a composed key as well.
  if (typeof value === 'string') return value.charCodeAt(0) === 0 ? `\0s${value}` : value;
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof StarlarkFunction || value instanceof Builtin) return value;
  if (value instanceof Float && Number.isInteger(value.value)) return intOfFloat(value.value);
  return `\0${compositeKey(value)}`;
}

/** True for a hashable value: immutable with all its elements. */
export function isHashable(value: Value): boolean {
  if (value instanceof Tuple) return value.key !== undefined || value.items.every(isHashable);
  if (value instanceof Struct) return [...value.fields.values()].every(isHashable);
  return value === null || typeof value !== 'object' || HASHABLE.has(value.type);
}

const HASHABLE = new Set(['float', 'function', 'builtin_function_or_method']);

/** Returns a text that is equal only for equal values, also as a part of another key. */
function compositeKey(value: Value): string {
  if (typeof value === 'string') return `s${value.length}:${value}`;
  if (value === null) return 'n';
  if (typeof value === 'boolean') return value ? 'y' : 'z';
  if (typeof value !== 'object') return `i${value};`;
  if (value instanceof Float)
    return Number.isInteger(value.value) ? `i${intOfFloat(value.value)};` : `f${value.value};`;
  if (value instanceof Tuple) {
    value.key ??= bounded(`t${value.items.length}:${value.items.map(compositeKey).join('')}`);
    return value.key;
  }
  if (value instanceof Struct) {
    const fields = [...value.fields].sort(([a], [b]) => (a < b ? -1 : 1));
    return bounded(`c${fields.length}:${fields.map(([name, field]) => `${name}=${compositeKey(field)}`).join('')}`);
  }
  return fail(`unhashable type: ${typeName(value)}`);
}

function bounded(key: string): string {
  if (key.length > MAX_KEY_CHARACTERS) fail(`a key is longer than ${MAX_KEY_CHARACTERS} characters`);
  return key;
}

/** The base of dicts and sets: keys in the order of insertion. */
abstract class HashTable extends StarlarkObject {
  abstract readonly size: number;
  frozen = false;
  /** Active loops over it. */
  iterators = 0;

  override get truth(): boolean {
    return this.size > 0;
  }

  override freeze(): Iterable<Value> {
    if (this.frozen) return [];
    this.frozen = true;
    return this.contents();
  }

  /** Every value in it that may be changeable; keys are not. */
  protected contents(): Iterable<Value> {
    return [];
  }

  /** Fails if it must not change; `verb` is such as `insert into`. */
  checkMutable(verb: string): void {
    if (this.frozen) fail(`cannot ${verb} frozen hash table`);
    if (this.iterators > 0) fail(`cannot ${verb} hash table during iteration`);
  }
}

/** Every method with a key fails if the key is mutable. */
export class Dict extends HashTable {
  readonly type = 'dict';
  private readonly entriesByKey = new Map<HashKey, Value>();
  /** The keys that are not the same as their hash key. */
  private originals: Map<HashKey, Value> | undefined;

  get size(): number {
    return this.entriesByKey.size;
  }

  get(key: Value): Value | undefined {
    return this.entriesByKey.get(hashKey(key));
  }

  has(key: Value): boolean {
    return this.entriesByKey.has(hashKey(key));
  }

  set(key: Value, value: Value): void {
    this.checkMutable('insert into');
    const hash = hashKey(key);
    if (hash !== key && !this.entriesByKey.has(hash)) {
      this.originals ??= new Map();
      this.originals.set(hash, key);
    }
    this.entriesByKey.set(hash, value);
  }

  /** Returns the value that was removed, or undefined. */
  delete(key: Value): Value | undefined {
    this.checkMutable('delete from');
    const hash = hashKey(key);
    const value = this.entriesByKey.get(hash);
    this.entriesByKey.delete(hash);
    this.originals?.delete(hash);
    return value;
  }

  clear(): void {
    this.checkMutable('clear');
    this.entriesByKey.clear();
    this.originals = undefined;
  }

  /** The first key; undefined if it is empty. */
  firstKey(): Value | undefined {
    for (const hash of this.entriesByKey.keys()) return this.keyOf(hash);
    return undefined;
  }

  keys(): Value[] {
    const keys: Value[] = [];
    for (const hash of this.entriesByKey.keys()) keys.push(this.keyOf(hash));
    return keys;
  }

  values(): Value[] {
    return [...this.entriesByKey.values()];
  }

  entries(): [key: Value, value: Value][] {
    const entries: [Value, Value][] = [];
    for (const [hash, value] of this.entriesByKey) entries.push([this.keyOf(hash), value]);
    return entries;
  }

  protected override contents(): Iterable<Value> {
    return this.entriesByKey.values();
  }

  private keyOf(hash: HashKey): Value {
    const original = this.originals?.get(hash);
    return original === undefined ? hash : original;
  }
}

/** Every method with an element fails if the element is mutable. */
export class StarlarkSet extends HashTable {
  readonly type = 'set';
  private readonly elementsByKey = new Map<HashKey, Value>();

  constructor(elements: Iterable<Value> = []) {
    super();
    for (const element of elements) this.add(element);
  }

  get size(): number {
    return this.elementsByKey.size;
  }

  has(element: Value): boolean {
    return this.elementsByKey.has(hashKey(element));
  }

  add(element: Value): void {
    this.checkMutable('insert into');
    const hash = hashKey(element);
    if (!this.elementsByKey.has(hash)) this.elementsByKey.set(hash, element);
  }

  /** Returns true if the element existed. */
  delete(element: Value): boolean {
    this.checkMutable('delete from');
    return this.elementsByKey.delete(hashKey(element));
  }

  clear(): void {
    this.checkMutable('clear');
    this.elementsByKey.clear();
  }

  /** The first element; undefined if it is empty. */
  first(): Value | undefined {
    for (const element of this.elementsByKey.values()) return element;
    return undefined;
  }

  elements(): Value[] {
    return [...this.elementsByKey.values()];
  }
}
