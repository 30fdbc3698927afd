import { type ErrorCode, SluiceError } from '../foundation/sluice-error.ts';

/**
 * Why a host did not execute a request:
 * - `NotFound`: no such repository, pull request or user, or the token cannot read it; the App was uninstalled
 * - `Unauthenticated`: the token is not valid any more
 * - `Refused`: the token lacks a permission, or a rule of the host forbids it; an operator has to act
 * - `TooManyRequests`: a limit; wait for `retryAfterMs`
 * - `Conflict`: the object changed meanwhile; read it again
 * - `InvalidInput`: the host rejects a value; the message names the field
 * - `Unavailable`, `Timeout`: no response, or an error of the host; the request may have been executed. Repeat it.
 * - `Corrupt`: a response that does not have the documented form, or that is too long
 */
export type ForgeErrorCode = Extract<
  ErrorCode,
  | 'NotFound'
  | 'Unauthenticated'
  | 'Refused'
  | 'TooManyRequests'
  | 'Conflict'
  | 'InvalidInput'
  | 'Unavailable'
  | 'Timeout'
  | 'Corrupt'
>;

export interface ForgeErrorDetails {
  /** Milliseconds that the host, or the own budget, requires to wait. */
  readonly retryAfterMs?: number;
  /** HTTP status, if there was a response. */
  readonly status?: number;
}

export class ForgeError extends SluiceError<ForgeErrorDetails> {
  declare readonly code: ForgeErrorCode;

  constructor(code: ForgeErrorCode, message: string, options: { cause?: unknown; details?: ForgeErrorDetails } = {}) {
    super(code, message, options);
    this.name = 'ForgeError';
  }
}
