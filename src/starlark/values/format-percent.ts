import { fail, type Machine } from '../machine/machine.ts';
import { Float, fixedText, floatText, scientificText } from './float.ts';
import { Dict } from './hash-table.ts';
import { type Int, intOfFloat } from './integer.ts';
import { Tuple } from './sequence.ts';
import { reprOf, stringOf } from './text.ts';
import { isInt, typeName, type Value } from './value.ts';

/** `format % values`: one value, a tuple of them, or a dict for `%(name)s`. */
export function formatPercent(machine: Machine, format: string, values: Value): string {
  const list = values instanceof Tuple ? values.items : [values];
  const parts: string[] = [];
  let used = 0;
  let keyed = false;
  let at = 0;
  machine.text(format.length);
  for (;;) {
    const percent = format.indexOf('%', at);
    if (percent === -1) break;
    parts.push(format.slice(at, percent));
    at = percent + 1;
    if (format[at] === '%') {
      parts.push('%');
      at += 1;
      continue;
    }
    let value: Value;
    if (format[at] === '(') {
      const end = format.indexOf(')', at);
      if (end === -1) fail('incomplete format key');
      if (!(values instanceof Dict)) fail('format requires a mapping');
      keyed = true;
      const key = format.slice(at + 1, end);
      value = values.get(key) ?? (values.has(key) ? null : fail(`key not found: ${key}`));
      at = end + 1;
    } else {
      if (used >= list.length) fail('not enough arguments for format string');
      value = list[used] as Value;
      used += 1;
    }
    const conversion = format[at];
    if (conversion === undefined) fail('incomplete format');
    parts.push(convert(machine, conversion, value));
    at += 1;
  }
  if (used < list.length && !keyed) fail('too many arguments for format string');
  parts.push(format.slice(at));
  return parts.join('');
}

function convert(machine: Machine, conversion: string, value: Value): string {
  switch (conversion) {
    case 's': {
      const text = stringOf(machine, value);
      machine.text(text.length);
      return text;
    }
    case 'r':
      return reprOf(machine, value);
    case 'd':
    case 'i':
      return String(wholeNumber(conversion, value));
    case 'o':
      return wholeNumber(conversion, value).toString(8);
    case 'x':
      return wholeNumber(conversion, value).toString(16);
    case 'X':
      return wholeNumber(conversion, value).toString(16).toUpperCase();
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      if (!(value instanceof Float || isInt(value)))
        fail(`%${conversion} format requires float, not ${typeName(value)}`);
      const text = FLOAT_TEXTS[conversion.toLowerCase()]?.(value instanceof Float ? value.value : Number(value)) ?? '';
      return conversion >= 'a' ? text : text.toUpperCase();
    }
    case 'c':
      return oneCharacter(value);
    default:
      return fail(`unknown conversion %${conversion}`);
  }
}

const FLOAT_TEXTS: Readonly<Record<string, (value: number) => string>> = {
  e: scientificText,
  f: fixedText,
  g: floatText,
};

function wholeNumber(conversion: string, value: Value): Int {
  if (isInt(value)) return value;
  if (!(value instanceof Float))
    return fail(`%${conversion} format requires integer: cannot convert ${typeName(value)} to int`);
  if (!Number.isFinite(value.value))
    return fail(`%${conversion} format requires integer: cannot convert ${floatText(value.value)} to int`);
  return intOfFloat(Math.trunc(value.value));
}

function oneCharacter(value: Value): string {
  if (isInt(value)) {
    if (value < 0 || value > 0x10ffff) fail(`%c format requires a valid Unicode code point, got ${value}`);
    return String.fromCodePoint(Number(value));
  }
  if (typeof value !== 'string')
    return fail(`%c format requires int or single-character string, not ${typeName(value)}`);
  if ([...value.slice(0, 3)].length !== 1) fail('%c format requires a single-character string');
  return value;
}
