import { fail, type Machine, TABLE } from '../machine/machine.ts';
import { StarlarkSet } from '../values/hash-table.ts';
import { iterate } from '../values/iterate.ts';
import type { Value } from '../values/value.ts';
import { positional } from './arguments.ts';
import { methods } from './methods.ts';

export const SET_METHODS = methods<StarlarkSet>({
  add(machine, set, args, named) {
    positional('add', args, named, 1);
    machine.elements(1);
    set.add(args[0] ?? null);
    return null;
  },
  clear(_machine, set, args, named) {
    positional('clear', args, named, 0);
    set.clear();
    return null;
  },
  difference(machine, set, args, named) {
    const other = otherSet(machine, 'difference', args, named);
    return made(
      machine,
      set.elements().filter((element) => !other.has(element)),
    );
  },
  discard(_machine, set, args, named) {
    positional('discard', args, named, 1);
    set.delete(args[0] ?? null);
    return null;
  },
  intersection(machine, set, args, named) {
    const other = otherSet(machine, 'intersection', args, named);
    return made(
      machine,
      set.elements().filter((element) => other.has(element)),
    );
  },
  issubset(machine, set, args, named) {
    const other = otherSet(machine, 'issubset', args, named);
    machine.step(set.size);
    return set.elements().every((element) => other.has(element));
  },
  issuperset(machine, set, args, named) {
    const other = otherSet(machine, 'issuperset', args, named);
    return other.elements().every((element) => set.has(element));
  },
  pop(_machine, set, args, named) {
    positional('pop', args, named, 0);
    const first = set.first();
    if (first === undefined) return fail('pop: empty set');
    set.delete(first);
    return first;
  },
  remove(_machine, set, args, named) {
    positional('remove', args, named, 1);
    if (!set.delete(args[0] ?? null)) fail('remove: missing key');
    return null;
  },
  symmetric_difference(machine, set, args, named) {
    const other = otherSet(machine, 'symmetric_difference', args, named);
    return made(machine, [
      ...set.elements().filter((element) => !other.has(element)),
      ...other.elements().filter((element) => !set.has(element)),
    ]);
  },
  union(machine, set, args, named) {
    const other = otherSet(machine, 'union', args, named);
    return made(machine, [...set.elements(), ...other.elements()]);
  },
});

function otherSet(
  machine: Machine,
  name: string,
  args: readonly Value[],
  named: ReadonlyMap<string, Value> | undefined,
): StarlarkSet {
  positional(name, args, named, 1);
  return made(machine, iterate(machine, args[0] ?? null, name));
}

function made(machine: Machine, elements: readonly Value[]): StarlarkSet {
  machine.elements(elements.length + TABLE);
  machine.step(elements.length);
  return new StarlarkSet(elements);
}
