import { fail, type Machine } from '../machine/machine.ts';
import { Dict, StarlarkSet } from '../values/hash-table.ts';
import { List, Range, Tuple } from '../values/sequence.ts';
import { typeName, type Value } from '../values/value.ts';

/** Iterates over the elements of a value, which must not change meanwhile, until `each` returns false. */
export function loop(machine: Machine, value: Value, each: (item: Value) => boolean): void {
  if (value instanceof Tuple) {
    for (const item of value.items) if (!each(item)) return;
  } else if (value instanceof Range) {
    for (let at = 0; at < value.length; at++) if (!each(value.at(at))) return;
  } else if (value instanceof List || value instanceof Dict || value instanceof StarlarkSet) {
    if (!(value instanceof List)) machine.elements(value.size);
    const items = value instanceof List ? value.items : value instanceof Dict ? value.keys() : value.elements();
    value.iterators += 1;
    for (const item of items) if (!each(item)) break;
    value.iterators -= 1;
  } else fail(`${typeName(value)} value is not iterable`);
}
