import type { Builtin, StarlarkFunction } from './callable.ts';
import { Float } from './float.ts';
import { Dict, StarlarkSet } from './hash-table.ts';
import { List, Range, Tuple } from './sequence.ts';
import { Struct } from './struct.ts';

/**
 * A value of Starlark. None is null; an int is a number or, beyond what is exact, a bigint (see `Int`); a float is a `Float`. A string
 * is a JavaScript one: its elements are UTF-16 code units.
 */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Tuple
  | List
  | Range
  | Dict
  | StarlarkSet
  | StarlarkFunction
  | Builtin
  | Struct;

/** What `type` gives. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
    case 'bigint':
      return 'int';
    default:
      return value === null ? 'NoneType' : value.type;
  }
}

/** What `bool` gives. */
export function truth(value: Value): boolean {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      return value.length > 0;
    case 'number':
      return value !== 0;
    case 'bigint':
      return true;
    default:
  }
  if (value === null) return false;
  if (value instanceof List || value instanceof Tuple || value instanceof Range) return value.length > 0;
  if (value instanceof Dict || value instanceof StarlarkSet) return value.size > 0;
  if (value instanceof Float) return value.value !== 0;
  return true;
}

export function isInt(value: Value): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Makes a value and all that it holds unchangeable. */
export function freeze(value: Value): void {
  const open: Value[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at instanceof Tuple) open.push(...at.items);
    else if (at instanceof Struct) open.push(...at.fields.values());
    else if (at instanceof List || at instanceof Dict || at instanceof StarlarkSet) {
      if (at.frozen) continue;
      at.frozen = true;
      if (at instanceof List) for (const item of at.items) open.push(item);
      else if (at instanceof Dict) for (const entry of at.entries()) open.push(...entry);
    }
  }
}
