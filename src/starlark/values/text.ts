import { fail, type Machine } from '../machine/machine.ts';
import { Builtin, StarlarkFunction } from './callable.ts';
import { Float, floatText } from './float.ts';
import { Dict, StarlarkSet } from './hash-table.ts';
import { List, Range, Tuple } from './sequence.ts';
import { Struct } from './struct.ts';
import { typeName, type Value } from './value.ts';

/** Nesting of values that are written. */
const MAX_DEPTH = 200;

/** The result of `str`. */
export function stringOf(machine: Machine, value: Value): string {
  return typeof value === 'string' ? value : reprOf(machine, value);
}

/** The result of `repr`. */
export function reprOf(machine: Machine, value: Value): string {
  const parts: string[] = [];
  write(machine, value, parts, []);
  return parts.join('');
}

function write(machine: Machine, value: Value, parts: string[], around: Value[]): void {
  const simple = simpleText(machine, value);
  if (simple !== undefined) {
    machine.text(simple.length);
    machine.elements(1);
    machine.step(1);
    parts.push(simple);
    return;
  }
  if (around.includes(value)) {
    parts.push(value instanceof Dict ? '{...}' : value instanceof List ? '[...]' : '...');
    return;
  }
  if (around.length >= MAX_DEPTH) fail(`a value that is nested more than ${MAX_DEPTH} levels deep cannot be written`);
  machine.step(1);
  around.push(value);
  if (value instanceof List) writeAll(machine, '[', value.items, ']', parts, around);
  else if (value instanceof Tuple) writeAll(machine, '(', value.items, value.length === 1 ? ',)' : ')', parts, around);
  else if (value instanceof StarlarkSet) writeAll(machine, 'set([', value.elements(), '])', parts, around);
  else if (value instanceof Dict) {
    parts.push('{');
    for (const [at, [key, inner]] of value.entries().entries()) {
      if (at > 0) parts.push(', ');
      write(machine, key, parts, around);
      parts.push(': ');
      write(machine, inner, parts, around);
    }
    parts.push('}');
  } else if (value instanceof Struct) {
    parts.push(value.name, '(');
    const fields = [...value.fields].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [at, [name, inner]] of fields.entries()) {
      parts.push(at > 0 ? ', ' : '', name, ' = ');
      write(machine, inner, parts, around);
    }
    parts.push(')');
  }
  around.pop();
}

function writeAll(
  machine: Machine,
  open: string,
  items: readonly Value[],
  end: string,
  parts: string[],
  around: Value[],
) {
  parts.push(open);
  for (const [at, item] of items.entries()) {
    if (at > 0) parts.push(', ');
    write(machine, item, parts, around);
  }
  parts.push(end);
}

/** Returns the text of a value without elements; undefined for other values. */
function simpleText(machine: Machine, value: Value): string | undefined {
  switch (typeof value) {
    case 'string':
      machine.text(value.length);
      return quoted(value);
    case 'boolean':
      return value ? 'True' : 'False';
    case 'number':
    case 'bigint':
      return String(value);
    default:
  }
  if (value === null) return 'None';
  if (value instanceof Float) return floatText(value.value);
  if (value instanceof StarlarkFunction) return `<function ${value.name}>`;
  if (value instanceof Builtin)
    return value.receiver === undefined
      ? `<built-in function ${value.name}>`
      : `<built-in method ${value.name} of ${typeName(value.receiver)} value>`;
  if (value instanceof Range) {
    const { start, stop, step } = value;
    if (step !== 1) return `range(${start}, ${stop}, ${step})`;
    return start === 0 ? `range(${stop})` : `range(${start}, ${stop})`;
  }
  return value instanceof Struct && value.type === 'module' ? `<module ${JSON.stringify(value.name)}>` : undefined;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

/** A string literal that reads as the text. */
function quoted(text: string): string {
  const escaped = text.replace(/["\\]|[^\P{C}]|[^\P{Z} ]/gu, (character) => {
    const known = ESCAPES.get(character);
    if (known !== undefined) return known;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
    if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, '0')}`;
    return `\\U${code.toString(16).padStart(8, '0')}`;
  });
  return `"${escaped}"`;
}
