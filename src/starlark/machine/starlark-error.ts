import type { SluiceError } from '../../foundation/sluice-error.ts';

/** What went wrong in a script that ran, before it is known where. Becomes a SluiceError at the border. */
export class EvaluationError extends Error {}

/** `details` of the errors of `runStarlark`. */
export interface StarlarkErrorDetails {
  /** Whether the script could not even start, failed while it ran, or was stopped at a bound. */
  readonly phase: 'syntax' | 'evaluation' | 'limit';
  /** What is wrong, without a place. */
  readonly reason: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** The calls that were open, outermost first, as Starlark prints them; empty for an error of syntax. */
  readonly backtrace: string;
}

export type StarlarkError = SluiceError<StarlarkErrorDetails> & { readonly details: StarlarkErrorDetails };
