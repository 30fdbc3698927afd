import { fail } from '../machine/machine.ts';
import type { Builtin } from '../values/callable.ts';
import { Float } from '../values/float.ts';
import { intOfFloat, negate, parseDigits } from '../values/integer.ts';
import { newList } from '../values/iterate.ts';
import { reprOf, stringOf } from '../values/text.ts';
import { isInt, truth, typeName, type Value } from '../values/value.ts';
import { positional, unpack, wantInt, wantString } from './arguments.ts';
import { attributeNames, findAttribute } from './attributes.ts';

/** Functions that convert or inspect values, or print. */
export const CONVERSION_FUNCTIONS: Readonly<Record<string, Builtin['call']>> = {
  abs(_machine, args, named) {
    positional('abs', args, named, 1);
    const [value = null] = args;
    if (value instanceof Float) return new Float(Math.abs(value.value));
    if (!isInt(value)) return fail(`abs: got ${typeName(value)}, want int or float`);
    return value < 0 ? negate(value) : value;
  },
  bool(_machine, args, named) {
    positional('bool', args, named, 0, 1);
    return args[0] !== undefined && truth(args[0]);
  },
  chr(_machine, args, named) {
    positional('chr', args, named, 1);
    const code = wantInt('chr', args[0] ?? null);
    if (code < 0) fail(`chr: Unicode code point ${code} out of range (<0)`);
    if (code > 0x10ffff) fail(`chr: Unicode code point U+${code.toString(16).toUpperCase()} out of range (>0x10FFFF)`);
    return String.fromCodePoint(code);
  },
  dir(machine, args, named) {
    positional('dir', args, named, 1);
    return newList(machine, attributeNames(args[0] ?? null));
  },
  fail(machine, args, named) {
    const [separator = ' '] = unpack('fail', [], named, ['sep?']);
    const by = wantString('fail', separator, 'sep');
    return fail(`fail: ${args.map((arg) => stringOf(machine, arg)).join(by)}`);
  },
  float(_machine, args, named) {
    positional('float', args, named, 0, 1);
    const [value = 0] = args;
    if (typeof value === 'string') return parseFloatText(value);
    if (typeof value === 'boolean') return new Float(value ? 1 : 0);
    if (value instanceof Float) return value;
    if (!isInt(value)) return fail(`float: got ${typeName(value)}, want number or string`);
    const float = Number(value);
    return Number.isFinite(float) ? new Float(float) : fail('float: int too large to convert to float');
  },
  getattr(_machine, args, named) {
    const [object = null, name = null, fallback] = unpack('getattr', args, named, ['object', 'name', 'default?']);
    const attribute = wantString('getattr', name, 'name');
    const value = findAttribute(object, attribute);
    if (value !== undefined) return value;
    return fallback === undefined
      ? fail(`getattr: ${typeName(object)} has no .${attribute} field or method`)
      : fallback;
  },
  hasattr(_machine, args, named) {
    const [object = null, name = null] = unpack('hasattr', args, named, ['object', 'name']);
    return findAttribute(object, wantString('hasattr', name, 'name')) !== undefined;
  },
  hash(machine, args, named) {
    positional('hash', args, named, 1);
    const text = wantString('hash', args[0] ?? null);
    machine.text(text.length);
    // The hash of Java's strings, as the specification recommends.
    let hash = 0;
    for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
    return hash;
  },
  int(_machine, args, named) {
    const [value = null, base] = unpack('int', args, named, ['x', 'base?']);
    if (typeof value === 'string') return parseInteger(value, base);
    if (base !== undefined) fail("int: can't convert non-string with explicit base");
    if (typeof value === 'boolean') return value ? 1 : 0;
    if (isInt(value)) return value;
    if (!(value instanceof Float)) return fail(`int: cannot convert ${typeName(value)} to int`);
    if (Number.isNaN(value.value)) fail('int: cannot convert float NaN to integer');
    if (!Number.isFinite(value.value)) fail('int: cannot convert float infinity to integer');
    return intOfFloat(Math.trunc(value.value));
  },
  ord(_machine, args, named) {
    positional('ord', args, named, 1);
    const text = wantString('ord', args[0] ?? null);
    const count = [...text.slice(0, 4)].length;
    if (count !== 1 || text.length > 2) fail(`ord: string encodes ${[...text].length} Unicode code points, want 1`);
    return text.codePointAt(0) ?? 0;
  },
  print(machine, args, named) {
    const [separator = ' '] = unpack('print', [], named, ['sep?']);
    const by = wantString('print', separator, 'sep');
    machine.print(args.map((arg) => stringOf(machine, arg)).join(by));
    return null;
  },
  repr(machine, args, named) {
    positional('repr', args, named, 1);
    return reprOf(machine, args[0] ?? null);
  },
  str(machine, args, named) {
    positional('str', args, named, 1);
    return stringOf(machine, args[0] ?? null);
  },
  type(_machine, args, named) {
    positional('type', args, named, 1);
    return typeName(args[0] ?? null);
  },
};

const BASES: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2 };

function parseInteger(text: string, given: Value | undefined): Value {
  const base = given === undefined ? 10 : wantInt('int', given, 'base');
  if (base !== 0 && (base < 2 || base > 36)) fail('int: base must be an integer >= 2 && <= 36');
  const [, sign = '', rest = ''] = /^([-+]?)(.*)$/s.exec(text) ?? [];
  const prefix = /^0([xXoObB])/.exec(rest)?.[1]?.toLowerCase() ?? '';
  const named = BASES[prefix] ?? 10;
  const digits = prefix !== '' && (base === 0 || base === named) ? rest.slice(2) : rest;
  const value = digits === '' ? undefined : parseDigits(digits, base === 0 ? named : base);
  // Without a base, a leading 0 could mean octal or decimal.
  if (value === undefined || (base === 0 && prefix === '' && /^0+[1-9]/.test(digits))) {
    const shown = text.length > 100 ? `${text.slice(0, 100)}…` : text;
    return fail(`int: invalid literal with base ${base}: ${shown}`);
  }
  return sign === '-' ? negate(value) : value;
}

function parseFloatText(text: string): Float {
  if (text === '') fail('float: empty string');
  const special = /^([-+]?)(?:(inf|infinity)|nan)$/i.exec(text);
  if (special !== null)
    return new Float(special[2] === undefined ? Number.NaN : special[1] === '-' ? -Infinity : Infinity);
  if (!/^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/.test(text)) {
    const shown = text.length > 100 ? `${text.slice(0, 100)}…` : text;
    fail(`invalid float literal: ${shown}`);
  }
  const value = Number(text);
  return Number.isFinite(value) ? new Float(value) : fail('floating-point number too large');
}
