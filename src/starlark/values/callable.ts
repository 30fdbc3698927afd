import type { Machine } from '../machine/machine.ts';
import type { Cell, Frame } from './frame.ts';
import { StarlarkObject, type Value } from './value.ts';

/** Keyword arguments, in the order of the call. */
export type NamedArguments = ReadonlyMap<string, Value>;

/** A function of the host. */
export class Builtin extends StarlarkObject {
  readonly type = 'builtin_function_or_method';
  readonly name: string;
  /** The receiver of a method. */
  readonly receiver: Value | undefined;
  readonly call: (machine: Machine, args: Value[], named: NamedArguments | undefined) => Value;

  constructor(name: string, call: Builtin['call'], receiver?: Value) {
    super();
    this.name = name;
    this.call = call;
    this.receiver = receiver;
  }
}

/** The compiled definition of a function: shared by all functions that running it creates. */
export interface FunctionCode {
  readonly name: string;
  /** Names of all parameters: positional ones, then keyword-only ones, then `*args` and `**kwargs`. */
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
  /** Of each parameter except `*args` and `**kwargs`; undefined if it is required. */
  readonly defaults: readonly (Value | undefined)[];
  /** Variables of enclosing functions. */
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
