import { fail, type Machine } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import { iterate, newList, newTuple } from '../values/iterate.ts';
import { Tuple } from '../values/sequence.ts';
import { typeName, type Value } from '../values/value.ts';
import { positional, unpack, wantInt, wantIterable, wantString } from './arguments.ts';
import { formatFields } from './format-fields.ts';
import { methods } from './methods.ts';
import { searchRange, splitText, splitWhitespace, stripped } from './text-parts.ts';

/** Methods that return a text or a boolean from the text alone. */
const SIMPLE: Readonly<Record<string, (text: string) => Value>> = {
  capitalize: (text) => upperFirst(text),
  isalnum: (text) => /^[\p{L}\p{Nd}]+$/u.test(text),
  isalpha: (text) => /^\p{L}+$/u.test(text),
  isdigit: (text) => /^\p{Nd}+$/u.test(text),
  islower: (text) => /[\p{Lu}\p{Ll}\p{Lt}]/u.test(text) && text === text.toLowerCase(),
  isspace: (text) => /^\s+$/u.test(text),
  istitle: (text) => /\p{L}/u.test(text) && text === titleCase(text),
  isupper: (text) => /[\p{Lu}\p{Ll}\p{Lt}]/u.test(text) && text === text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  title: (text) => titleCase(text),
  upper: (text) => text.toUpperCase(),
};

function upperFirst(text: string): string {
  const [first = ''] = text;
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

function titleCase(text: string): string {
  return text.replace(/\p{L}+/gu, (word) => upperFirst(word));
}

export const STRING_METHODS = methods<string>({
  ...Object.fromEntries(
    Object.entries(SIMPLE).map(([name, simple]) => [
      name,
      (machine: Machine, text: string, args: readonly Value[], named: NamedArguments | undefined) => {
        positional(name, args, named, 0);
        machine.text(text.length);
        return simple(text);
      },
    ]),
  ),
  codepoint_ords: (machine, text, args, named) => {
    positional('codepoint_ords', args, named, 0);
    machine.elements(text.length);
    return newList(
      machine,
      [...text].map((character) => character.codePointAt(0) ?? 0),
    );
  },
  codepoints: (machine, text, args, named) => {
    positional('codepoints', args, named, 0);
    machine.elements(text.length);
    return newList(machine, [...text]);
  },
  count(machine, text, args, named) {
    positional('count', args, named, 1, 3);
    const part = wantString('count', args[0] ?? null);
    const [from, to] = searchRange('count', text, args);
    machine.step(text.length >> 4);
    if (from > to) return 0;
    const within = text.slice(from, to);
    return part === '' ? within.length + 1 : countOf(within, part);
  },
  elem_ords: (machine, text, args, named) => {
    positional('elem_ords', args, named, 0);
    machine.elements(text.length);
    return newList(
      machine,
      Array.from({ length: text.length }, (_, at) => text.charCodeAt(at)),
    );
  },
  elems: (machine, text, args, named) => {
    positional('elems', args, named, 0);
    machine.elements(text.length);
    return newList(machine, text.split(''));
  },
  endswith: (machine, text, args, named) => hasAffix(machine, 'endswith', text, args, named),
  find: (machine, text, args, named) => find(machine, 'find', text, args, named),
  format: (machine, text, args, named) => formatFields(machine, text, args, named),
  index: (machine, text, args, named) => find(machine, 'index', text, args, named),
  join(machine, text, args, named) {
    positional('join', args, named, 1);
    const parts = iterate(machine, wantIterable('join', args[0] ?? null), 'join');
    let length = text.length * parts.length;
    for (const part of parts) {
      if (typeof part !== 'string') fail(`join: in list, want string, got ${typeName(part)}`);
      length += part.length;
    }
    machine.text(length);
    return parts.join(text);
  },
  lstrip: (machine, text, args, named) => strip(machine, 'lstrip', text, args, named),
  partition(machine, text, args, named) {
    const by = separator('partition', args, named);
    machine.text(text.length);
    const at = text.indexOf(by);
    if (at === -1) return newTuple(machine, [text, '', '']);
    return newTuple(machine, [text.slice(0, at), by, text.slice(at + by.length)]);
  },
  removeprefix(machine, text, args, named) {
    positional('removeprefix', args, named, 1);
    const prefix = wantString('removeprefix', args[0] ?? null);
    machine.text(text.length);
    return text.startsWith(prefix) ? text.slice(prefix.length) : text;
  },
  removesuffix(machine, text, args, named) {
    positional('removesuffix', args, named, 1);
    const suffix = wantString('removesuffix', args[0] ?? null);
    machine.text(text.length);
    return text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text;
  },
  replace(machine, text, args, named) {
    positional('replace', args, named, 2, 3);
    const old = wantString('replace', args[0] ?? null);
    const by = wantString('replace', args[1] ?? null, 2);
    const count = args[2] === undefined ? -1 : wantInt('replace', args[2], 3);
    return replace(machine, text, old, by, count);
  },
  rfind: (machine, text, args, named) => find(machine, 'rfind', text, args, named),
  rindex: (machine, text, args, named) => find(machine, 'rindex', text, args, named),
  rpartition(machine, text, args, named) {
    const by = separator('rpartition', args, named);
    machine.text(text.length);
    const at = text.lastIndexOf(by);
    if (at === -1) return newTuple(machine, ['', '', text]);
    return newTuple(machine, [text.slice(0, at), by, text.slice(at + by.length)]);
  },
  rsplit: (machine, text, args, named) => split(machine, 'rsplit', text, args, named),
  rstrip: (machine, text, args, named) => strip(machine, 'rstrip', text, args, named),
  split: (machine, text, args, named) => split(machine, 'split', text, args, named),
  splitlines(machine, text, args, named) {
    positional('splitlines', args, named, 0, 1);
    machine.text(text.length);
    const lines = text.split('\n');
    if (args[0] === true) for (const at of lines.keys()) if (at < lines.length - 1) lines[at] += '\n';
    if (lines.at(-1) === '') lines.pop();
    return newList(machine, lines);
  },
  startswith: (machine, text, args, named) => hasAffix(machine, 'startswith', text, args, named),
  strip: (machine, text, args, named) => strip(machine, 'strip', text, args, named),
});

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

function hasAffix(
  machine: Machine,
  name: 'startswith' | 'endswith',
  text: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): boolean {
  positional(name, args, named, 1, 3);
  const [from, to] = searchRange(name, text, args);
  const [affix = null] = args;
  const affixes = affix instanceof Tuple ? affix.items : [affix];
  machine.step(affixes.length);
  const within = from <= to ? text.slice(from, to) : undefined;
  return affixes.some((each, at) => {
    if (typeof each !== 'string')
      fail(
        affix instanceof Tuple
          ? `${name}: want string, got ${typeName(each)}, for element ${at}`
          : `${name}: got ${typeName(each)}, want string or tuple of string`,
      );
    return within !== undefined && (name === 'startswith' ? within.startsWith(each) : within.endsWith(each));
  });
}

function find(
  machine: Machine,
  name: 'find' | 'index' | 'rfind' | 'rindex',
  text: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): number {
  positional(name, args, named, 1, 3);
  const part = wantString(name, args[0] ?? null);
  const [from, to] = searchRange(name, text, args);
  machine.step(text.length >> 4);
  let at = -1;
  if (from <= to) {
    const within = text.slice(from, to);
    at = name.startsWith('r') ? within.lastIndexOf(part) : within.indexOf(part);
  }
  if (at === -1) return name.endsWith('index') ? fail(`${name}: substring not found`) : -1;
  return at + from;
}

function separator(name: string, args: readonly Value[], named: NamedArguments | undefined): string {
  positional(name, args, named, 1);
  const by = wantString(name, args[0] ?? null);
  return by === '' ? fail(`${name}: empty separator`) : by;
}

function strip(
  machine: Machine,
  name: 'strip' | 'lstrip' | 'rstrip',
  text: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): string {
  positional(name, args, named, 0, 1);
  const characters = args[0] === undefined || args[0] === null ? undefined : wantString(name, args[0]);
  machine.text(text.length);
  return stripped(text, characters, name !== 'rstrip', name !== 'lstrip');
}

function split(
  machine: Machine,
  name: 'split' | 'rsplit',
  text: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): Value {
  const [by = null, most = null] = unpack(name, args, named, ['sep?', 'maxsplit?']);
  const limit = most === null ? -1 : wantInt(name, most, 'maxsplit');
  machine.text(text.length);
  if (by !== null && typeof by !== 'string') fail(`split: got ${typeName(by)} for separator, want string`);
  if (by === '') fail('split: empty separator');
  const fromEnd = name === 'rsplit';
  return newList(machine, by === null ? splitWhitespace(text, limit, fromEnd) : splitText(text, by, limit, fromEnd));
}

function replace(machine: Machine, text: string, old: string, by: string, count: number): string {
  const parts = old === '' ? ['', ...text, ''] : text.split(old);
  const replaced = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1);
  machine.text(text.length + replaced * by.length);
  machine.elements(parts.length);
  const head = parts.slice(0, replaced + 1).join(by);
  return replaced === parts.length - 1 ? head : [head, ...parts.slice(replaced + 1)].join(old);
}
