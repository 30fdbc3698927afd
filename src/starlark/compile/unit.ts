import type { Machine } from '../machine/machine.ts';
import type { Expression, Statement } from '../syntax/tree.ts';
import type { Evaluate, Execute } from '../values/frame.ts';
import type { Value } from '../values/value.ts';

/** The state of compiling a script. */
export interface Unit {
  readonly machine: Machine;
  /** Global variables by slot; an unset one is undefined. */
  readonly globals: (Value | undefined)[];
  readonly load: (module: string) => ReadonlyMap<string, Value> | undefined;
  /** Compiles an expression inside of another construct. */
  readonly expression: (expression: Expression) => Evaluate;
  /** Compiles the statements inside of another construct. */
  readonly block: (statements: readonly Statement[]) => Execute;
  /** Parts of expressions that were compiled so far: the steps of a statement are what it adds here. */
  parts: number;
}
