import { fail, type Machine } from '../machine/machine.ts';
import { Float } from './float.ts';
import { Dict, StarlarkSet } from './hash-table.ts';
import { List, Range, Tuple } from './sequence.ts';
import { Struct } from './struct.ts';
import { typeName, type Value } from './value.ts';

/** Nesting of values that a comparison follows. */
const MAX_DEPTH = 200;

/** The result of `==`. */
export function equal(machine: Machine, a: Value, b: Value, depth = 0): boolean {
  if (a === b) return true;
  if (typeof a === 'string') {
    if (typeof b === 'string' && a.length === b.length && a.length > 256) machine.step(a.length >> 8);
    return false;
  }
  // Ints have one form each, so two that differ are not the same object either.
  if (a === null || b === null) return false;
  if (typeof a !== 'object') return b instanceof Float && typeof a !== 'boolean' && sameNumber(b.value, a);
  if (a instanceof Float) {
    if (b instanceof Float) return a.value === b.value || (Number.isNaN(a.value) && Number.isNaN(b.value));
    return (typeof b === 'number' || typeof b === 'bigint') && sameNumber(a.value, b);
  }
  if (typeof b !== 'object' || a.type !== b.type) return false;
  if (depth > MAX_DEPTH) fail('comparison exceeded maximum recursion depth');
  machine.step(1);
  if (a instanceof List || a instanceof Tuple) {
    const [x, y] = [a.items, (b as List | Tuple).items];
    if (x.length !== y.length) return false;
    machine.step(x.length);
    return x.every((item, at) => equal(machine, item, y[at] as Value, depth + 1));
  }
  if (a instanceof Dict) {
    const other = b as Dict;
    if (a.size !== other.size) return false;
    machine.step(a.size);
    return a.entries().every(([key, value]) => {
      const found = other.get(key);
      return found !== undefined && equal(machine, value, found, depth + 1);
    });
  }
  if (a instanceof StarlarkSet) {
    const other = b as StarlarkSet;
    machine.step(a.size);
    return a.size === other.size && a.elements().every((element) => other.has(element));
  }
  if (a instanceof Range) {
    const other = b as Range;
    if (a.length !== other.length || a.length === 0) return a.length === other.length;
    return a.start === other.start && (a.length === 1 || a.step === other.step);
  }
  if (a instanceof Struct && b instanceof Struct && a.name === b.name && a.fields.size === b.fields.size)
    return [...a.fields].every(([name, value]) => {
      const found = b.fields.get(name);
      return found !== undefined && equal(machine, value, found, depth + 1);
    });
  return false;
}

function sameNumber(float: number, int: number | bigint): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: compares a number and a bigint exactly
  return float == int;
}

/** Below 0 if `a` is before `b`, above if after. Fails for values that have no order; `operator` is for the message. */
export function compare(machine: Machine, a: Value, b: Value, operator = '<', depth = 0): number {
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length > 256) machine.step(Math.min(a.length, b.length) >> 8);
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const [x, y] = [orderedNumber(a), orderedNumber(b)];
  if (x !== undefined && y !== undefined) {
    // NaN is above all other numbers.
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if ((a instanceof List && b instanceof List) || (a instanceof Tuple && b instanceof Tuple)) {
    if (depth > MAX_DEPTH) fail('comparison exceeded maximum recursion depth');
    const shorter = Math.min(a.length, b.length);
    for (let at = 0; at < shorter; at++) {
      machine.step(1);
      const [left, right] = [a.items[at] as Value, b.items[at] as Value];
      if (!equal(machine, left, right, depth + 1)) return compare(machine, left, right, operator, depth + 1);
    }
    return a.length - b.length;
  }
  return fail(`${typeName(a)} ${operator} ${typeName(b)} not implemented`);
}

function orderedNumber(value: Value): number | bigint | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return value instanceof Float ? value.value : undefined;
}
