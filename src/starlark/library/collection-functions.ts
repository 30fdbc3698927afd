import { fail, type Machine, TABLE } from '../machine/machine.ts';
import type { Builtin, NamedArguments } from '../values/callable.ts';
import { call } from '../values/calls.ts';
import { compare } from '../values/compare.ts';
import { Dict, StarlarkSet } from '../values/hash-table.ts';
import { iterate, lengthOf, newList, newTuple } from '../values/iterate.ts';
import { List, Range } from '../values/sequence.ts';
import { truth, typeName, type Value } from '../values/value.ts';
import { positional, unpack, wantInt, wantIterable } from './arguments.ts';
import { updateDict } from './dict-methods.ts';

/** Functions that iterate over elements or create collections. */
export const COLLECTION_FUNCTIONS: Readonly<Record<string, Builtin['call']>> = {
  all: (machine, args, named) => elements(machine, 'all', args, named).every(truth),
  any: (machine, args, named) => elements(machine, 'any', args, named).some(truth),
  dict(machine, args, named) {
    const dict = new Dict();
    machine.elements(TABLE + (named?.size ?? 0));
    updateDict(machine, 'dict', dict, args, named);
    return dict;
  },
  enumerate(machine, args, named) {
    const [source = null, start = 0] = unpack('enumerate', args, named, ['iterable', 'start?']);
    const first = wantInt('enumerate', start, 'start');
    const items = iterate(machine, wantIterable('enumerate', source, 'iterable'), 'enumerate');
    machine.step(items.length);
    return newList(
      machine,
      items.map((item, at) => newTuple(machine, [first + at, item])),
    );
  },
  len(_machine, args, named) {
    positional('len', args, named, 1);
    const [value = null] = args;
    return lengthOf(value) ?? fail(`len: value of type ${typeName(value)} has no len`);
  },
  list(machine, args, named) {
    positional('list', args, named, 0, 1);
    return newList(machine, args[0] === undefined ? [] : [...iterate(machine, wantIterable('list', args[0]), 'list')]);
  },
  max: (machine, args, named) => extreme(machine, 'max', args, named),
  min: (machine, args, named) => extreme(machine, 'min', args, named),
  range(_machine, args, named) {
    positional('range', args, named, 1, 3);
    const [first = 0, second, third = 1] = args.map((value, at) => {
      if (typeof value === 'bigint') fail(`range: ${value} out of range`);
      return wantInt('range', value, at + 1);
    });
    if (third === 0) fail('range: step argument must not be zero');
    return second === undefined ? new Range(0, first, third) : new Range(first, second, third);
  },
  reversed(machine, args, named) {
    return newList(machine, [...elements(machine, 'reversed', args, named)].reverse());
  },
  set(machine, args, named) {
    positional('set', args, named, 0, 1);
    const items = args[0] === undefined ? [] : iterate(machine, wantIterable('set', args[0]), 'set');
    machine.elements(items.length + TABLE);
    machine.step(items.length);
    return new StarlarkSet(items);
  },
  sorted(machine, args, named) {
    const [source = null, key = null, reverse = false] = unpack('sorted', args, named, [
      'iterable',
      'key?',
      'reverse?',
    ]);
    const items = [...iterate(machine, wantIterable('sorted', source, 'iterable'), 'sorted')];
    const keyed = items.map((item) => ({ item, by: keyOf(machine, key, item) }));
    const sign = truth(reverse) ? -1 : 1;
    // Equal elements keep their order in both directions.
    keyed.sort((a, b) => {
      machine.step(1);
      return sign * compare(machine, a.by, b.by);
    });
    return newList(
      machine,
      keyed.map(({ item }) => item),
    );
  },
  tuple(machine, args, named) {
    positional('tuple', args, named, 0, 1);
    return newTuple(
      machine,
      args[0] === undefined ? [] : [...iterate(machine, wantIterable('tuple', args[0]), 'tuple')],
    );
  },
  zip(machine, args, named) {
    if (named !== undefined && named.size > 0) fail('zip does not accept keyword arguments');
    const sources = args.map((value, at) => {
      if (typeof value === 'string' || lengthOf(value) === undefined)
        fail(`zip: argument #${at + 1} is not iterable: ${typeName(value)}`);
      return iterate(machine, value);
    });
    const rows = sources.length === 0 ? 0 : Math.min(...sources.map((source) => source.length));
    machine.step(rows * sources.length);
    machine.elements(rows * (sources.length + 1));
    const zipped = Array.from({ length: rows }, (_, at) =>
      newTuple(
        machine,
        sources.map((source) => source[at] ?? null),
      ),
    );
    return new List(zipped);
  },
};

function elements(machine: Machine, name: string, args: readonly Value[], named: NamedArguments | undefined) {
  positional(name, args, named, 1);
  return iterate(machine, wantIterable(name, args[0] ?? null), name);
}

function keyOf(machine: Machine, key: Value, item: Value): Value {
  if (key === null) return item;
  return call(machine, key, [item], undefined, machine.position);
}

function extreme(
  machine: Machine,
  name: 'min' | 'max',
  args: readonly Value[],
  named: NamedArguments | undefined,
): Value {
  let key: Value = null;
  for (const [parameter, value] of named ?? []) {
    if (parameter !== 'key') fail(`${name}: unexpected keyword argument "${parameter}"`);
    key = value;
  }
  if (args.length === 0) fail(`${name} requires at least one positional argument`);
  const items = args.length === 1 ? iterate(machine, args[0] ?? null, name) : args;
  const [first, ...rest] = items;
  if (first === undefined) return fail(`${name}: argument is an empty sequence`);
  let best = first;
  let bestKey = keyOf(machine, key, first);
  const sign = name === 'max' ? 1 : -1;
  for (const item of rest) {
    machine.step(1);
    const itemKey = keyOf(machine, key, item);
    if (sign * compare(machine, itemKey, bestKey, name === 'max' ? '>' : '<') > 0) {
      best = item;
      bestKey = itemKey;
    }
  }
  return best;
}
