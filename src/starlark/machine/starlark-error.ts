import type { SluiceError } from '../../foundation/sluice-error.ts';

/** An error of a running script, without its place. `runStarlark` converts it to a SluiceError. */
export class EvaluationError extends Error {}

/** `details` of the errors of `runStarlark`. */
export interface StarlarkErrorDetails {
  /** Whether the script has a syntax error, failed while it ran, or was stopped at a limit. */
  readonly phase: 'syntax' | 'evaluation' | 'limit';
  /** The problem, without its place. */
  readonly reason: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** The active calls, outermost first, as Starlark prints them; empty for a syntax error. */
  readonly backtrace: string;
}

export type StarlarkError = SluiceError<StarlarkErrorDetails> & { readonly details: StarlarkErrorDetails };
