import { fail } from '../machine/machine.ts';
import { equal } from '../values/compare.ts';
import { iterate } from '../values/iterate.ts';
import type { List } from '../values/sequence.ts';
import { positional, wantInt, wantIterable } from './arguments.ts';
import { methods } from './methods.ts';

export const LIST_METHODS = methods<List>({
  append(machine, list, args, named) {
    positional('append', args, named, 1);
    list.checkMutable('append to');
    machine.elements(1);
    list.items.push(args[0] ?? null);
    return null;
  },
  clear(_machine, list, args, named) {
    positional('clear', args, named, 0);
    list.checkMutable('clear');
    list.items = [];
    return null;
  },
  extend(machine, list, args, named) {
    positional('extend', args, named, 1);
    const items = iterate(machine, wantIterable('extend', args[0] ?? null), 'extend');
    list.checkMutable('extend');
    machine.elements(items.length);
    for (let at = 0, count = items.length; at < count; at++) list.items.push(items[at] ?? null);
    return null;
  },
  index(machine, list, args, named) {
    positional('index', args, named, 1, 3);
    const [element = null, start = null, end = null] = args;
    const from = start === null ? 0 : place(wantInt('index', start, 2), list.length);
    const to = end === null ? list.length : place(wantInt('index', end, 3), list.length);
    for (let at = from; at < to; at++) {
      machine.step(1);
      if (equal(machine, list.items[at] ?? null, element)) return at;
    }
    return fail('index: value not in list');
  },
  insert(machine, list, args, named) {
    positional('insert', args, named, 2);
    const [index = null, element = null] = args;
    const at = place(wantInt('insert', index), list.length);
    list.checkMutable('insert into');
    machine.elements(1);
    machine.step(1 + ((list.length - at) >> 4));
    list.items.splice(at, 0, element);
    return null;
  },
  pop(machine, list, args, named) {
    positional('pop', args, named, 0, 1);
    const index = args[0] === undefined ? list.length - 1 : wantInt('pop', args[0]);
    const at = index < 0 ? index + list.length : index;
    if (at < 0 || at >= list.length)
      fail(
        list.length === 0
          ? `pop: index ${index} out of range: empty list`
          : `pop: list index ${index} out of range [${-list.length}:${list.length - 1}]`,
      );
    list.checkMutable('pop from');
    machine.step(1 + ((list.length - at) >> 4));
    return list.items.splice(at, 1)[0] ?? null;
  },
  remove(machine, list, args, named) {
    positional('remove', args, named, 1);
    list.checkMutable('remove from');
    machine.step(1 + (list.length >> 4));
    const at = list.items.findIndex((item) => {
      machine.step(1);
      return equal(machine, item, args[0] ?? null);
    });
    if (at === -1) fail('remove: element not found');
    list.items.splice(at, 1);
    return null;
  },
});

/** A place as in a slice: from the end if negative, and within the list. */
function place(index: number, length: number): number {
  return Math.min(Math.max(index < 0 ? index + length : index, 0), length);
}
