import { ERROR_CODES, type ErrorCode, SluiceError } from '../../foundation/sluice-error.ts';
import type { FieldCause } from '../../resource/object/invalid-object.ts';

/** A cause from the server. `field` is a field path, or empty. */
export interface StatusCause extends FieldCause {
  /** `FieldValueInvalid` and the like. */
  readonly reason: string;
}

/** The details of a server's error besides the message. */
export interface StatusErrorDetails {
  /** The HTTP status. */
  readonly status: number;
  /** `NotFound`, `Invalid`; empty if the answer was no Status object. */
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  /** The object that the error is about, where the server names it. */
  readonly name?: string;
  readonly retryAfterSeconds?: number;
}

const MAX_CAUSES = 1000;
const MAX_TEXT_CHARACTERS = 500;

/** Codes that share their reason with another code, so that the reason does not identify them. */
const SHADOWED: ReadonlySet<ErrorCode> = new Set(['Busy', 'Corrupt', 'PushRefused', 'RenderFailed']);
const BY_REASON = new Map<string, ErrorCode>([
  ...(Object.keys(ERROR_CODES) as ErrorCode[])
    .filter((code) => !SHADOWED.has(code))
    .map((code): [string, ErrorCode] => [ERROR_CODES[code].reason, code]),
  ['Gone', 'Expired'],
  ['ServerTimeout', 'Timeout'],
]);
const BY_STATUS = new Map<number, ErrorCode>(
  [...BY_REASON.values()].reverse().map((code): [number, ErrorCode] => [ERROR_CODES[code].status, code]),
);
/** The message of Porch while another request changes the same revision. */
const BUSY = /another request is already in progress/i;

/** The message of Porch, as an internal error, for a push that its pipeline refuses. */
const RENDER_FAILED = /error rendering package in kpt function pipeline/i;

/** The error of a response with an HTTP status from 400. `body` is its text. */
export function statusErrorOf(status: number, body: string): SluiceError<StatusErrorDetails> {
  return statusError(readStatus(body) ?? { message: plainMessage(status, body) }, status);
}

/**
 * The error of a Status object, with the server's message unchanged. `status` is the HTTP status if the
 * object names none.
 */
export function statusError(object: Record<string, unknown>, status: number): SluiceError<StatusErrorDetails> {
  const code = typeof object.code === 'number' ? object.code : status;
  const reason = textOf(object.reason);
  const message = textOf(object.message) || `the server returned ${reason || code}`;
  const given = isRecord(object.details) ? object.details : {};
  const { retryAfterSeconds, name } = given;
  return new SluiceError(errorCode(code, reason, message), message, {
    details: {
      status: code,
      reason,
      causes: causesOf(given.causes),
      ...(typeof name === 'string' && name !== '' ? { name } : {}),
      ...(typeof retryAfterSeconds === 'number' ? { retryAfterSeconds } : {}),
    },
  });
}

/** True for a 404 that is not about an object but about the path: the server does not serve the kind. */
export function isUnknownAddress(error: unknown): boolean {
  if (!(error instanceof SluiceError) || error.code !== 'NotFound') return false;
  const { reason } = (error.details ?? {}) as Partial<StatusErrorDetails>;
  return reason === '' || error.message.startsWith('the server could not find the requested resource');
}

function errorCode(status: number, reason: string, message: string): ErrorCode {
  const code = BY_REASON.get(reason) ?? BY_STATUS.get(status);
  if (code === 'Conflict' && BUSY.test(message)) return 'Busy';
  if (code === 'Internal' && RENDER_FAILED.test(message)) return 'RenderFailed';
  if (code !== undefined) return code;
  if (status >= 500) return 'Unavailable';
  return status >= 400 ? 'BadRequest' : 'Unavailable';
}

function readStatus(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) && value.kind === 'Status' ? value : undefined;
  } catch {
    // Proxies and old servers respond with plain text or HTML, from which the caller makes a message.
    return undefined;
  }
}

function plainMessage(status: number, body: string): string {
  const text = body.trimStart().startsWith('<') ? '' : body.trim().slice(0, MAX_TEXT_CHARACTERS);
  return text === '' ? `the server responded with HTTP status ${status}` : text;
}

function causesOf(value: unknown): StatusCause[] {
  if (!Array.isArray(value)) return [];
  return value
    .slice(0, MAX_CAUSES)
    .filter(isRecord)
    .map((cause) => {
      const field = textOf(cause.field);
      return { field, path: pathOf(field), message: textOf(cause.message), reason: textOf(cause.reason) };
    });
}

/** The steps of `a.b[0].c[some.key]`. */
function pathOf(field: string): (string | number)[] {
  return [...field.matchAll(/\[(\d+)\]|\[([^\]]*)\]|([^.[\]]+)/g)].map(([, index, key, word]) =>
    index === undefined ? (key ?? word ?? '') : Number(index),
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
