/**
 * The closed set of errors. The table maps each code to the reason and HTTP status for Kubernetes clients, and to the
 * exit code of the CLI; docs/errors.md explains each to users.
 */
export const ERROR_CODES = {
  InvalidInput: { reason: 'Invalid', status: 422, exit: 2 },
  BadRequest: { reason: 'BadRequest', status: 400, exit: 2 },
  Unauthenticated: { reason: 'Unauthorized', status: 401, exit: 1 },
  NotFound: { reason: 'NotFound', status: 404, exit: 1 },
  AlreadyExists: { reason: 'AlreadyExists', status: 409, exit: 1 },
  Conflict: { reason: 'Conflict', status: 409, exit: 1 },
  Busy: { reason: 'Conflict', status: 409, exit: 1 },
  Refused: { reason: 'Forbidden', status: 403, exit: 1 },
  PushRefused: { reason: 'Forbidden', status: 403, exit: 1 },
  Expired: { reason: 'Expired', status: 410, exit: 1 },
  LimitExceeded: { reason: 'RequestEntityTooLarge', status: 413, exit: 1 },
  Unsupported: { reason: 'MethodNotAllowed', status: 405, exit: 1 },
  NotAcceptable: { reason: 'NotAcceptable', status: 406, exit: 1 },
  UnsupportedMediaType: { reason: 'UnsupportedMediaType', status: 415, exit: 1 },
  TooManyRequests: { reason: 'TooManyRequests', status: 429, exit: 1 },
  Unavailable: { reason: 'ServiceUnavailable', status: 503, exit: 1 },
  Timeout: { reason: 'Timeout', status: 504, exit: 1 },
  RenderFailed: { reason: 'InternalError', status: 500, exit: 1 },
  Corrupt: { reason: 'InternalError', status: 500, exit: 1 },
  Internal: { reason: 'InternalError', status: 500, exit: 1 },
} as const satisfies Record<string, { reason: string; status: number; exit: number }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/**
 * The one error type of Sluice. The message states the problem and, where it helps, the next step;
 * it never contains a secret. `details` carries what a program needs to react (a ref, a field, positions).
 */
export class SluiceError<Details = unknown> extends Error {
  readonly code: ErrorCode;
  readonly details: Details | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Details } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SluiceError';
    this.code = code;
    this.details = options.details;
  }
}

/** True for a SluiceError, of the given code if one is named. */
export function isSluiceError(error: unknown, code?: ErrorCode): error is SluiceError {
  return error instanceof SluiceError && (code === undefined || error.code === code);
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the result of a search, with undefined in place of NotFound. */
export async function unlessMissing<Found>(search: Promise<Found>): Promise<Found | undefined> {
  try {
    return await search;
  } catch (error) {
    if (isSluiceError(error, 'NotFound')) return undefined;
    throw error;
  }
}
