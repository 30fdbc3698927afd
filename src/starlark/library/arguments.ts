import { fail } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import { Dict, StarlarkSet } from '../values/hash-table.ts';
import { List, Range, Tuple } from '../values/sequence.ts';
import { isInt, typeName, type Value } from '../values/value.ts';

/** Checks the number of arguments of a function without keyword arguments. */
export function positional(
  name: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
  least: number,
  most = least,
): void {
  if (named !== undefined && named.size > 0) fail(`${name}: unexpected keyword arguments`);
  const count = args.length;
  if (count < least) fail(`${name}: got ${count} arguments, want ${least === most ? '' : 'at least '}${least}`);
  if (count > most) fail(`${name}: got ${count} arguments, want ${least === most ? '' : 'at most '}${most}`);
}

/** The arguments in the order of the parameters; one that ends with `?` is optional, and undefined if absent. */
export function unpack(
  name: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
  parameters: readonly string[],
): (Value | undefined)[] {
  if (args.length > parameters.length) fail(`${name}: got ${args.length} arguments, want at most ${parameters.length}`);
  const values: (Value | undefined)[] = parameters.map((_, at) => args[at]);
  for (const [key, value] of named ?? []) {
    const at = parameters.findIndex((parameter) => parameter === key || parameter === `${key}?`);
    if (at === -1) fail(`${name}: unexpected keyword argument "${key}"`);
    if (values[at] !== undefined) fail(`${name}: got multiple values for keyword argument "${key}"`);
    values[at] = value;
  }
  for (const [at, parameter] of parameters.entries())
    if (values[at] === undefined && !parameter.endsWith('?')) fail(`${name}: missing argument for ${parameter}`);
  return values;
}

export function wantString(name: string, value: Value, parameter: string | number = 1): string {
  return typeof value === 'string' ? value : wrong(name, value, 'string', parameter);
}

/** An int that is small enough for indexes and counts. */
export function wantInt(name: string, value: Value, parameter: string | number = 1): number {
  if (typeof value === 'bigint') return value < 0n ? -Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER;
  return isInt(value) ? Number(value) : wrong(name, value, 'int', parameter);
}

export function wantIterable(name: string, value: Value, parameter: string | number = 1): Value {
  const fits =
    value instanceof List ||
    value instanceof Tuple ||
    value instanceof Dict ||
    value instanceof StarlarkSet ||
    value instanceof Range;
  return fits ? value : wrong(name, value, 'iterable', parameter);
}

export function wrong(name: string, value: Value, wanted: string, parameter: string | number = 1): never {
  return fail(`${name}: for parameter ${parameter}: got ${typeName(value)}, want ${wanted}`);
}
