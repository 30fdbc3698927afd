import type { Machine } from '../machine.ts';
import type { Value } from '../values/value.ts';

/** What compiling a script needs everywhere. */
export interface Unit {
  readonly machine: Machine;
  /** Global variables by slot; an unset one is undefined. */
  readonly globals: (Value | undefined)[];
  readonly load: (module: string) => ReadonlyMap<string, Value> | undefined;
  /** Parts of expressions that were compiled so far: what running a statement costs is what it adds here. */
  parts: number;
}
