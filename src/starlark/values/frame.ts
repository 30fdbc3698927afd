import type { Value } from './value.ts';

/** A variable that functions share. */
export interface Cell {
  value: Value | undefined;
}

/** The variables of one call. An unset variable is undefined. */
export class Frame {
  readonly slots: (Value | Cell | undefined)[];
  readonly free: readonly Cell[];
  /** The value of `return`. */
  result: Value = null;

  constructor(slots: (Value | Cell | undefined)[], free: readonly Cell[]) {
    this.slots = slots;
    this.free = free;
  }
}

/** Runs an expression. */
export type Evaluate = (frame: Frame) => Value;

/** How the execution of a statement ended: a number, which a loop can test cheaply. */
export const NEXT = 0;
export const BREAK = 1;
export const CONTINUE = 2;
export const RETURN = 3;
export type Ending = typeof NEXT | typeof BREAK | typeof CONTINUE | typeof RETURN;

/** Runs a statement. */
export type Execute = (frame: Frame) => Ending;
