import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Position } from './position.ts';
import { EvaluationError } from './starlark-error.ts';

/** Bounds of one script. */
export interface StarlarkLimits {
  /** Steps: about one for each part of a statement that runs, and for each element that a built-in function reads. */
  readonly steps: number;
  /** All values that a script ever creates, in characters; an element of a collection counts as `ELEMENT` of them. */
  readonly memory: number;
  /** Nested calls. */
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

/** Memory of an element of a list or an entry of a dict. */
export const ELEMENT = 32;

/** Memory of an empty dict or set, in elements. */
export const TABLE = 8;

/** Maximum length of a text, far below the limit of the engine. */
const MAX_TEXT_CHARACTERS = 32 * 1024 * 1024;

/** An active call: what was called, and where. */
export interface OpenCall {
  readonly name: string;
  /** The place of the call in its caller. */
  readonly position: Position;
  /** True for a function of the host, which has no source lines. */
  readonly builtIn: boolean;
}

/**
 * The resource usage and current position of a script. A script cannot continue after an error, so nothing is restored when one is
 * thrown: the active calls are the backtrace.
 */
export class Machine {
  /** The place of the current operation. */
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

  /** Takes steps from the budget. Throws LimitExceeded when it is used up. */
  step(count: number): void {
    this.steps -= count;
    if (this.steps < 0) throw exceeded(`it takes more than ${this.limits.steps} steps`);
  }

  /** Takes elements from the memory budget, before they are created. */
  elements(count: number): void {
    this.memory -= count * ELEMENT;
    if (this.memory < 0) throw this.outOfMemory();
  }

  /** Takes a text of some length from the memory budget, before it is created. */
  text(length: number): void {
    this.memory -= length;
    if (this.memory < 0) throw this.outOfMemory();
    if (length > MAX_TEXT_CHARACTERS) throw exceeded(`it makes a text of more than ${MAX_TEXT_CHARACTERS} characters`);
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
