import { fail, type Machine } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import { reprOf, stringOf } from '../values/text.ts';
import type { Value } from '../values/value.ts';

/** The result of `format` of a string: `{}`, `{0}` and `{name}`, each with an optional `!r` or `!s`. */
export function formatFields(
  machine: Machine,
  format: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): string {
  const parts: string[] = [];
  let automatic = false;
  let manual = false;
  let used = 0;
  let at = 0;
  machine.text(format.length);
  const field = (name: string): Value => {
    if (name === '') {
      if (manual) fail('format: cannot switch from manual field specification to automatic field numbering');
      automatic = true;
      used += 1;
      if (used > args.length) fail('format: tuple index out of range');
      return args[used - 1] ?? null;
    }
    if (/^[0-9]+$/.test(name)) {
      if (automatic) fail('format: cannot switch from automatic field numbering to manual field specification');
      manual = true;
      if (Number(name) >= args.length) fail('format: tuple index out of range');
      return args[Number(name)] ?? null;
    }
    const value = named?.get(name);
    if (value !== undefined) return value;
    if (name.includes('.')) fail(`format: attribute syntax x.y is not supported in replacement fields: ${name}`);
    if (name.includes('[')) fail(`format: element syntax a[i] is not supported in replacement fields: ${name}`);
    if (name.includes('{')) fail('format: nested replacement fields not supported');
    return fail(`format: keyword ${name} not found`);
  };
  for (;;) {
    const brace = /[{}]/g;
    brace.lastIndex = at;
    const next = brace.exec(format);
    if (next === null) break;
    parts.push(format.slice(at, next.index));
    at = next.index + 1;
    if (format[at] === next[0]) {
      parts.push(next[0]);
      at += 1;
      continue;
    }
    if (next[0] === '}') fail("format: single '}' in format");
    const end = format.indexOf('}', at);
    if (end === -1) fail("format: unmatched '{' in format");
    const inner = format.slice(at, end);
    at = end + 1;
    const colon = inner.indexOf(':');
    const spec = colon === -1 ? '' : inner.slice(colon + 1);
    const [name = '', conversion = 's'] = (colon === -1 ? inner : inner.slice(0, colon)).split('!');
    const value = field(name);
    if (spec !== '') fail(`format: format spec features not supported in replacement fields: ${spec}`);
    if (conversion !== 's' && conversion !== 'r') fail(`format: unknown conversion ${JSON.stringify(conversion)}`);
    const text = conversion === 'r' ? reprOf(machine, value) : stringOf(machine, value);
    machine.text(text.length);
    parts.push(text);
  }
  parts.push(format.slice(at));
  return parts.join('');
}
