import { fail, type Machine } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import type { Dict } from '../values/hash-table.ts';
import { Dict as DictClass } from '../values/hash-table.ts';
import { iterate, lengthOf, newList, newTuple } from '../values/iterate.ts';
import { typeName, type Value } from '../values/value.ts';
import { positional } from './arguments.ts';
import { methods } from './methods.ts';

export const DICT_METHODS = methods<Dict>({
  clear(_machine, dict, args, named) {
    positional('clear', args, named, 0);
    dict.clear();
    return null;
  },
  get(_machine, dict, args, named) {
    positional('get', args, named, 1, 2);
    const [key = null, fallback = null] = args;
    const value = dict.get(key);
    return value === undefined ? fallback : value;
  },
  items(machine, dict, args, named) {
    positional('items', args, named, 0);
    machine.elements(dict.size * 3);
    machine.step(dict.size);
    return newList(
      machine,
      dict.entries().map((entry) => newTuple(machine, entry)),
    );
  },
  keys(machine, dict, args, named) {
    positional('keys', args, named, 0);
    machine.step(dict.size >> 2);
    machine.elements(dict.size);
    return newList(machine, dict.keys());
  },
  pop(_machine, dict, args, named) {
    positional('pop', args, named, 1, 2);
    const [key = null, fallback] = args;
    const value = dict.delete(key);
    if (value !== undefined) return value;
    return fallback === undefined ? fail('pop: missing key') : fallback;
  },
  popitem(machine, dict, args, named) {
    positional('popitem', args, named, 0);
    const key = dict.firstKey();
    if (key === undefined) return fail('popitem: empty dict');
    return newTuple(machine, [key, dict.delete(key) ?? null]);
  },
  setdefault(machine, dict, args, named) {
    positional('setdefault', args, named, 1, 2);
    const [key = null, fallback = null] = args;
    const value = dict.get(key);
    if (value !== undefined) return value;
    machine.elements(1);
    dict.set(key, fallback);
    return fallback;
  },
  update(machine, dict, args, named) {
    updateDict(machine, 'update', dict, args, named);
    return null;
  },
  values(machine, dict, args, named) {
    positional('values', args, named, 0);
    machine.step(dict.size >> 2);
    return newList(machine, dict.values());
  },
});

/** Adds entries as `dict` and `update` do: those of a dict or pairs, then keyword arguments. */
export function updateDict(
  machine: Machine,
  name: string,
  dict: Dict,
  args: readonly Value[],
  named: NamedArguments | undefined,
): void {
  if (args.length > 1) fail(`${name}: got ${args.length} arguments, want at most 1`);
  const [source] = args;
  if (source instanceof DictClass) {
    machine.elements(source.size);
    machine.step(source.size);
    for (const [key, value] of source.entries()) dict.set(key, value);
  } else if (source !== undefined) {
    const pairs = iterate(machine, source, name);
    machine.elements(pairs.length);
    machine.step(pairs.length);
    for (const [at, pair] of pairs.entries()) {
      const length = typeof pair === 'string' ? undefined : lengthOf(pair);
      const what = `${name}: dictionary update sequence element #${at}`;
      if (length === undefined) fail(`${what} is not iterable (${typeName(pair)})`);
      if (length !== 2) fail(`${what} has length ${length}, want 2`);
      const [key = null, value = null] = iterate(machine, pair);
      dict.set(key, value);
    }
  }
  for (const [key, value] of named ?? []) dict.set(key, value);
}
