import { Builtin } from '../values/callable.ts';
import type { Value } from '../values/value.ts';
import { COLLECTION_FUNCTIONS } from './collection-functions.ts';
import { CONVERSION_FUNCTIONS } from './conversion-functions.ts';

/** The names that every script knows. */
export const UNIVERSE: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['None', null],
  ['True', true],
  ['False', false],
  ...Object.entries({ ...COLLECTION_FUNCTIONS, ...CONVERSION_FUNCTIONS }).map(([name, call]): [string, Value] => [
    name,
    new Builtin(name, call),
  ]),
]);
