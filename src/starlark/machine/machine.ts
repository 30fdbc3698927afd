import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Position } from './position.ts';
import { EvaluationError } from './starlark-error.ts';

/** Bounds of one script. */
export interface StarlarkLimits {
  /** Pieces of work: about one for each part of a statement that runs, and for each element that a built-in function looks at. */
  readonly steps: number;
  /** All that a script ever makes, in characters; an element of a collection counts as `ELEMENT` of them. */
  readonly memory: number;
  /** Calls inside of calls. */
  readonly depth: number;
  /** Characters of the script. */
  readonly sourceLength: number;
}

export const DEFAULT_STARLARK_LIMITS: StarlarkLimits = {
  steps: 10_000_000,
  memory: 256 * 1024 * 1024,
  depth: 400,
  sourceLength: 1024 * 1024,
};

/** What an element of a list or an entry of a dict costs of the memory. */
export const ELEMENT = 32;

/** What a dict or set costs of the memory, in elements, before it holds anything. */
export const TABLE = 8;

/** Longest text, far below what the engine can hold. */
const MAXIMUM_TEXT = 32 * 1024 * 1024;

/** A call that has not ended: what was called, and where. */
export interface OpenCall {
  readonly name: string;
  /** Where in its caller it was called. */
  readonly position: Position;
  /** A function that does not come from the script has no lines of its own. */
  readonly builtIn: boolean;
}

/**
 * What a running script has used, and where it is. A script has no way to go on after an error, so nothing is put back when one is
 * thrown: the calls that are open then are the stack to show.
 */
export class Machine {
  /** Where the operation is that runs at this time. */
  position: Position = 0;
  readonly calls: OpenCall[] = [];
  readonly print: (text: string) => void;
  private readonly limits: StarlarkLimits;
  private steps: number;
  private memory: number;

  constructor(limits: StarlarkLimits, print: (text: string) => void) {
    this.limits = limits;
    this.print = print;
    this.steps = limits.steps;
    this.memory = limits.memory;
  }

  /** Takes steps of the budget. Throws LimitExceeded when it is used up. */
  step(count: number): void {
    this.steps -= count;
    if (this.steps < 0) throw exceeded(`it takes more than ${this.limits.steps} steps`);
  }

  /** Takes elements of the budget of memory, before they are made. */
  elements(count: number): void {
    this.memory -= count * ELEMENT;
    if (this.memory < 0) throw this.outOfMemory();
  }

  /** Takes a text of some length of the budget, before it is made. */
  text(length: number): void {
    this.memory -= length;
    if (this.memory < 0) throw this.outOfMemory();
    if (length > MAXIMUM_TEXT) throw exceeded(`it makes a text of more than ${MAXIMUM_TEXT} characters`);
    if (length > 256) this.step(length >> 8);
  }

  /** Counts a call. */
  enter(call: OpenCall): void {
    if (this.calls.length >= this.limits.depth)
      throw exceeded(`its calls are nested more than ${this.limits.depth} deep`);
    this.calls.push(call);
  }

  leave(): void {
    this.calls.pop();
  }

  private outOfMemory(): SluiceError {
    return exceeded(`it makes more than ${Math.round(this.limits.memory / 1024 / 1024)} MiB of values`);
  }
}

function exceeded(what: string): SluiceError {
  return new SluiceError('LimitExceeded', `the script was stopped: ${what}`);
}

/** Ends the script with an error. */
export function fail(message: string): never {
  throw new EvaluationError(message);
}
