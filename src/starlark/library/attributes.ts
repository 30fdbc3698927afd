import { fail } from '../machine/machine.ts';
import { Builtin } from '../values/callable.ts';
import { Dict, StarlarkSet } from '../values/hash-table.ts';
import { List } from '../values/sequence.ts';
import { Struct } from '../values/struct.ts';
import { typeName, type Value } from '../values/value.ts';
import { DICT_METHODS } from './dict-methods.ts';
import { LIST_METHODS } from './list-methods.ts';
import type { Methods } from './methods.ts';
import { SET_METHODS } from './set-methods.ts';
import { STRING_METHODS } from './string-methods.ts';

/** `value.name`. Fails if there is none. */
export function attributeOf(value: Value, name: string): Value {
  return findAttribute(value, name) ?? missing(value, name);
}

/** `value.name`; undefined if there is none. None is returned as it is. */
export function findAttribute(value: Value, name: string): Value | undefined {
  if (value instanceof Struct) return value.attribute(name);
  const method = methodsOf(value)?.get(name);
  if (method === undefined) return undefined;
  return new Builtin(name, (machine, args, named) => method(machine, value as never, args, named), value);
}

function missing(value: Value, name: string): Value {
  // A field with the value None exists.
  if (value instanceof Struct && value.fields.has(name)) return null;
  return fail(`${typeName(value)} has no .${name} field or method`);
}

/** The result of `dir`. */
export function attributeNames(value: Value): string[] {
  const names = value instanceof Struct ? value.fields.keys() : (methodsOf(value)?.keys() ?? []);
  return [...names].sort();
}

function methodsOf(value: Value): Methods<never> | undefined {
  if (typeof value === 'string') return STRING_METHODS as Methods<never>;
  if (value instanceof Dict) return DICT_METHODS as Methods<never>;
  if (value instanceof List) return LIST_METHODS as Methods<never>;
  return value instanceof StarlarkSet ? (SET_METHODS as Methods<never>) : undefined;
}
