import { Builtin } from '../values/callable.ts';
import { Struct } from '../values/struct.ts';
import type { Value } from '../values/value.ts';

/** A module of functions and constants. */
export function moduleOf(
  name: string,
  functions: Readonly<Record<string, Builtin['call']>>,
  constants: Readonly<Record<string, Value>> = {},
): Struct {
  const members = Object.entries(functions).map(([member, call]): [string, Value] => [
    member,
    new Builtin(member, call),
  ]);
  return new Struct(new Map([...members, ...Object.entries(constants)]), { type: 'module', name });
}
