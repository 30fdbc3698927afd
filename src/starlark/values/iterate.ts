import { fail, type Machine } from '../machine/machine.ts';
import { Dict, StarlarkSet } from './hash-table.ts';
import { toInt } from './integer.ts';
import { List, Range, Tuple } from './sequence.ts';
import { reprOf } from './text.ts';
import { isInt, typeName, type Value } from './value.ts';

/** The elements of an iterable value, or undefined. A list returns its own array, which must not be changed. */
export function elementsOf(machine: Machine, value: Value): readonly Value[] | undefined {
  if (value instanceof List || value instanceof Tuple) {
    machine.step(value.length >> 4);
    return value.items;
  }
  if (value instanceof Dict) return counted(machine, value.size, () => value.keys());
  if (value instanceof StarlarkSet) return counted(machine, value.size, () => value.elements());
  if (value instanceof Range)
    return counted(machine, value.length, () => Array.from({ length: value.length }, (_, at) => value.at(at)));
  return undefined;
}

function counted(machine: Machine, size: number, make: () => Value[]): Value[] {
  machine.step(size >> 2);
  machine.elements(size);
  return make();
}

/** The elements; fails for a value that is not iterable, with the name of the calling function if there is one. */
export function iterate(machine: Machine, value: Value, context = ''): readonly Value[] {
  return (
    elementsOf(machine, value) ??
    fail(`${context === '' ? '' : `${context}: `}${typeName(value)} value is not iterable`)
  );
}

/** A new list, counted in the memory budget. */
export function newList(machine: Machine, items: Value[]): List {
  machine.elements(items.length + 1);
  return new List(items);
}

export function newTuple(machine: Machine, items: Value[]): Tuple {
  machine.elements(items.length + 1);
  return new Tuple(items);
}

/** The number of elements; undefined for what has none. */
export function lengthOf(value: Value): number | undefined {
  if (typeof value === 'string') return value.length;
  if (value instanceof List || value instanceof Tuple || value instanceof Range) return value.length;
  return value instanceof Dict || value instanceof StarlarkSet ? value.size : undefined;
}

/** An index counted from the start. Fails for other values. */
function indexIn(value: Value, index: Value, length: number): number {
  if (!isInt(index)) return fail(`${typeName(value)} index: got ${typeName(index)}, want int`);
  const at = Number(index) < 0 ? Number(index) + length : Number(index);
  if (at >= 0 && at < length) return at;
  if (length === 0) return fail(`index ${index} out of range: empty ${typeName(value)}`);
  return fail(`${typeName(value)} index ${index} out of range [${-length}:${length - 1}]`);
}

/** `operand[index]` */
export function getIndex(machine: Machine, operand: Value, index: Value): Value {
  if (operand instanceof Dict) {
    const value = operand.get(index);
    if (value === undefined) fail(`key ${shortened(reprOf(machine, index))} not in dict`);
    return value;
  }
  if (operand instanceof List || operand instanceof Tuple)
    return operand.items[indexIn(operand, index, operand.length)] as Value;
  if (typeof operand === 'string') {
    machine.step(1);
    return operand.charAt(indexIn(operand, index, operand.length));
  }
  if (operand instanceof Range) return operand.at(indexIn(operand, index, operand.length));
  return fail(`unhandled index operation ${typeName(operand)}[${typeName(index)}]`);
}

function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/** `operand[index] = value` */
export function setIndex(machine: Machine, operand: Value, index: Value, value: Value): void {
  if (operand instanceof Dict) {
    machine.elements(1);
    operand.set(index, value);
  } else if (operand instanceof List) {
    const at = indexIn(operand, index, operand.length);
    operand.checkMutable('assign to element of');
    operand.items[at] = value;
  } else fail(`${typeName(operand)} value does not support item assignment`);
}

/** `operand[start:stop:step]`; an absent part is null. */
export function slice(machine: Machine, operand: Value, start: Value, stop: Value, step: Value): Value {
  const length = operand instanceof Dict || operand instanceof StarlarkSet ? undefined : lengthOf(operand);
  if (length === undefined) return fail(`invalid slice operand ${typeName(operand)}`);
  if (step !== null && !isInt(step)) fail(`invalid slice step: got ${typeName(step)}, want int`);
  const by = step === null ? 1 : Number(step);
  if (by === 0) fail('zero is not a valid slice step');
  const [least, most] = by > 0 ? [0, length] : [-1, length - 1];
  const bound = (value: Value, without: number, name: string): number => {
    if (value === null) return without;
    if (!isInt(value)) return fail(`invalid ${name} index: got ${typeName(value)}, want int`);
    const at = Number(value) < 0 ? Number(value) + length : Number(value);
    return Math.min(Math.max(at, least), most);
  };
  const from = bound(start, by > 0 ? 0 : length - 1, 'start');
  const to = bound(stop, by > 0 ? length : -1, 'end');
  if (operand instanceof Range) return subrange(operand, from, to, by);
  const size = Math.max(0, Math.ceil((to - from) / by));
  if (typeof operand === 'string') {
    machine.text(size);
    if (by === 1) return operand.slice(from, Math.max(from, to));
    machine.step(size);
    let text = '';
    for (let at = 0; at < size; at++) text += operand.charAt(from + at * by);
    return text;
  }
  const { items } = operand as List | Tuple;
  machine.elements(size + 1);
  machine.step(size >> 4);
  const chosen =
    by === 1
      ? items.slice(from, Math.max(from, to))
      : Array.from({ length: size }, (_, at) => items[from + at * by] as Value);
  return operand instanceof List ? new List(chosen) : new Tuple(chosen);
}

function subrange(range: Range, from: number, to: number, by: number): Range {
  return new Range(range.at(from), range.at(by > 0 ? Math.max(from, to) : Math.min(from, to)), range.step * by);
}

/** `value * count` for texts and sequences. */
export function repeat(machine: Machine, value: string | List | Tuple, count: number | bigint): Value {
  const times = count < 1 ? 0 : Number(toInt(BigInt(count)));
  const total = times * value.length;
  if (typeof value === 'string') {
    machine.text(total);
    return value.repeat(total === 0 ? 0 : times);
  }
  machine.elements(total + 1);
  machine.step(Math.ceil(total / 16));
  const items: Value[] = [];
  if (total > 0) for (let at = 0; at < times; at++) for (const item of value.items) items.push(item);
  return value instanceof List ? new List(items) : new Tuple(items);
}
