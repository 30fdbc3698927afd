import { positional, unpack, wantString } from '../library/arguments.ts';
import { fail, type Machine } from '../machine/machine.ts';
import { Float } from '../values/float.ts';
import { Dict } from '../values/hash-table.ts';
import { toInt } from '../values/integer.ts';
import { iterate, lengthOf } from '../values/iterate.ts';
import { List } from '../values/sequence.ts';
import { Struct } from '../values/struct.ts';
import { isInt, typeName, type Value } from '../values/value.ts';
import { moduleOf } from './module.ts';

const MAX_DEPTH = 200;

export const JSON_MODULE = moduleOf('json', {
  encode(machine, args, named) {
    positional('encode', args, named, 1);
    const parts: string[] = [];
    encode(machine, args[0] ?? null, parts, 0);
    return parts.join('');
  },
  decode(machine, args, named) {
    const [text = null, fallback] = unpack('decode', args, named, ['x', 'default?']);
    const source = wantString('decode', text, 'x');
    machine.text(source.length);
    machine.elements(source.length >> 2);
    machine.step(4 + source.length);
    try {
      return JSON.parse(source, revive as (key: string, value: unknown) => unknown);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return fallback === undefined ? fail('json.decode: the text is not JSON') : fallback;
    }
  },
  indent(machine, args, named) {
    const [text = null, prefix = '', by = '\t'] = unpack('indent', args, named, ['str', 'prefix?', 'indent?']);
    const source = wantString('indent', text, 'str');
    const [start, step] = [wantString('indent', prefix, 'prefix'), wantString('indent', by, 'indent')];
    return indent(machine, source, start, step);
  },
});

/** Converts the result of `JSON.parse` to values, from the inside out. */
function revive(_key: string, value: unknown, { source = '' }: { source?: string }): Value {
  if (typeof value === 'number') return /[.eE]/.test(source) ? new Float(value) : toInt(BigInt(source));
  if (Array.isArray(value)) return new List(value);
  if (value === null || typeof value !== 'object') return value as Value;
  const dict = new Dict();
  for (const [key, inner] of Object.entries(value)) dict.set(key, inner as Value);
  return dict;
}

function encode(machine: Machine, value: Value, parts: string[], depth: number): void {
  machine.step(1);
  if (depth > MAX_DEPTH) fail(`json.encode: nested more than ${MAX_DEPTH} levels deep`);
  const push = (text: string) => {
    machine.text(text.length + 1);
    parts.push(text);
  };
  if (value === null) push('null');
  else if (typeof value === 'string') {
    machine.text(value.length);
    push(JSON.stringify(value));
  } else if (typeof value === 'boolean' || isInt(value)) push(String(value));
  else if (value instanceof Float) {
    if (!Number.isFinite(value.value)) fail('json.encode: cannot encode a float that is not finite');
    push(String(value.value));
  } else if (value instanceof Dict || value instanceof Struct) {
    const entries = value instanceof Dict ? value.entries() : [...value.fields];
    const named = entries.map(([key, inner]): [string, Value] => {
      if (typeof key !== 'string') fail(`json.encode: dict has ${typeName(key)} key, want string`);
      return [key, inner];
    });
    named.sort(([a], [b]) => (a < b ? -1 : 1));
    push('{');
    for (const [at, [key, inner]] of named.entries()) {
      push(`${at > 0 ? ',' : ''}${JSON.stringify(key)}:`);
      encode(machine, inner, parts, depth + 1);
    }
    push('}');
  } else if (lengthOf(value) !== undefined) {
    push('[');
    for (const [at, item] of iterate(machine, value).entries()) {
      if (at > 0) push(',');
      encode(machine, item, parts, depth + 1);
    }
    push(']');
  } else fail(`json.encode: cannot encode ${typeName(value)} as JSON`);
}

/** One token after the other with trailing blanks: a text that is not JSON is detected at once. */
const TOKEN = /("(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|[^\s[\]{},:"]+|(?=\s))\s*/sy;

/** Splits a JSON text into lines. */
function indent(machine: Machine, source: string, prefix: string, step: string): string {
  const parts: string[] = [];
  let depth = 0;
  const line = () => {
    machine.text(prefix.length + step.length * depth + 1);
    return `\n${prefix}${step.repeat(depth)}`;
  };
  machine.text(source.length);
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const token = TOKEN.exec(source)?.[1];
    if (token === undefined) return fail('json.indent: the text is not JSON');
    machine.step(1);
    if (token === '{' || token === '[') {
      depth += 1;
      if (depth > MAX_DEPTH) fail(`json.indent: nested more than ${MAX_DEPTH} levels deep`);
      parts.push(token, line());
    } else if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1);
      parts.push(line(), token);
    } else if (token === ',') parts.push(token, line());
    else parts.push(token === ':' ? ': ' : token.replace(/^([[{])\s+/, '$1'));
  }
  return parts.join('');
}
