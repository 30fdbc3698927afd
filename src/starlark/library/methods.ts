import type { Machine } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import type { Value } from '../values/value.ts';

type Method<Receiver> = (
  machine: Machine,
  receiver: Receiver,
  args: readonly Value[],
  named: NamedArguments | undefined,
) => Value;

/** The methods of a type by name. */
export type Methods<Receiver> = ReadonlyMap<string, Method<Receiver>>;

/** Creates a table of methods: a Map, since in an object a script would find inherited members, such as `constructor`. */
export function methods<Receiver>(table: Readonly<Record<string, Method<Receiver>>>): Methods<Receiver> {
  return new Map(Object.entries(table));
}
