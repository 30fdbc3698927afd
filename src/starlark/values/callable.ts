import type { Machine } from '../machine/machine.ts';
import type { Cell, Frame } from './frame.ts';
import { StarlarkObject, type Value } from './value.ts';

/** Arguments that were given by name, in the order in which they were given. */
export type NamedArguments = ReadonlyMap<string, Value>;

/** A function that does not come from the script. */
export class Builtin extends StarlarkObject {
  readonly type = 'builtin_function_or_method';
  readonly name: string;
  /** What it is a method of. */
  readonly receiver: Value | undefined;
  readonly call: (machine: Machine, args: Value[], named: NamedArguments | undefined) => Value;

  constructor(name: string, call: Builtin['call'], receiver?: Value) {
    super();
    this.name = name;
    this.call = call;
    this.receiver = receiver;
  }
}

/** What a definition in the script comes to: shared by all functions that running the definition makes. */
export interface FunctionCode {
  readonly name: string;
  /** Names of all parameters: positional ones, then those that go by name only, then `*args` and `**kwargs`. */
  readonly parameters: readonly string[];
  readonly positional: number;
  readonly namedOnly: number;
  readonly takesRest: boolean;
  readonly takesNamedRest: boolean;
  /** Number of slots of its frame; parameters have the first ones. */
  readonly slots: number;
  /** Slots that functions inside share, so that they hold cells. */
  readonly cells: readonly number[];
  readonly body: (frame: Frame) => Value;
}

export class StarlarkFunction extends StarlarkObject {
  readonly type = 'function';
  readonly code: FunctionCode;
  /** Of each parameter other than the rests; undefined if it must be given. */
  readonly defaults: readonly (Value | undefined)[];
  /** Variables of functions around it. */
  readonly free: readonly Cell[];

  constructor(code: FunctionCode, defaults: readonly (Value | undefined)[], free: readonly Cell[]) {
    super();
    this.code = code;
    this.defaults = defaults;
    this.free = free;
  }

  get name(): string {
    return this.code.name;
  }
}
