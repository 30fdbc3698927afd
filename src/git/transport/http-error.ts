import { type ErrorCode, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../remote-url.ts';

/** What is known of a request that failed. */
export interface HttpFailure {
  /** The status of the answer, if there was one. */
  readonly status?: number | undefined;
  /** False if the server has certainly done nothing of what was asked. */
  readonly mayBeDone: boolean;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter?: number | undefined;
}

/** Failures before a connection was there: nothing was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** The error for an answer with a status that is no success. `said` is the text of the answer, without secrets. */
export function statusError(
  url: string,
  status: number,
  withCredentials: boolean,
  said: string,
  retryAfter: number | undefined,
): SluiceError {
  const [code, meaning] = meaningOf(status, withCredentials);
  const words = cleanText(said).replaceAll(/\s+/g, ' ').slice(0, 500);
  const later = retryAfter === undefined ? '' : `, and wants to be asked again in ${retryAfter} s`;
  // A gateway may have lost the answer of a server that did its work. What refuses outright has done nothing.
  const mayBeDone = status === 408 || (status >= 500 && status !== 501 && status !== 503);
  const details: HttpFailure = { status, mayBeDone, retryAfter };
  return new SluiceError(
    code,
    `remote ${url} ${meaning} (HTTP ${status})${later}${words === '' ? '' : `. It says: ${words}`}`,
    { details },
  );
}

function meaningOf(status: number, withCredentials: boolean): [ErrorCode, string] {
  if (status >= 300 && status < 400) return ['Refused', 'redirects elsewhere: give its new address'];
  if (status === 401)
    return withCredentials
      ? ['Refused', 'does not accept the credentials: renew them']
      : ['Refused', 'asks for credentials: give it some'];
  if (status === 403) return ['Refused', 'does not allow this'];
  if (status === 404 || status === 410) return ['NotFound', 'has no such repository'];
  if (status === 413) return ['LimitExceeded', 'does not take as much at once: push less, or raise its limit'];
  if (status === 408 || status === 504) return ['Timeout', 'did not get done in time'];
  return ['Unavailable', 'cannot be used now'];
}

/** The error for a request that got no answer, or not all of one. */
export function connectionError(url: string, error: unknown): SluiceError {
  const code = codeOf(error);
  const details: HttpFailure = { mayBeDone: !NEVER_SENT.has(code) };
  const late = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  const why = messageOf(error) || code || 'the connection failed';
  return new SluiceError(
    late ? 'Timeout' : 'Unavailable',
    `remote ${url} cannot be used now: ${cleanText(why).slice(0, 300)}`,
    {
      cause: error,
      details,
    },
  );
}

/** The code of an error, or of the first below it that has one: several addresses of one name fail together. */
function codeOf(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = current instanceof AggregateError ? current.errors[0] : current.cause;
  }
  return '';
}
