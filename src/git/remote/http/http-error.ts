import { type ErrorCode, messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { cleanText } from '../../../foundation/text/clean-text.ts';
import type { GitCredentials } from '../../git-repository.ts';
import { credentialsMeaning, deniedMeaning } from '../../network/refused-credentials.ts';
import type { RequestFailure } from '../protocol/request-failure.ts';

/** An answer with a status other than success. */
interface Refusal {
  /** What was sent with the request; undefined for none. */
  readonly credentials: GitCredentials | undefined;
  /** True if success would have changed refs. */
  readonly changesRefs: boolean;
  readonly retryAfter: number | undefined;
  /** The target of a redirect. */
  readonly location: string | undefined;
}

/** Failures before the connection was established: nothing was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Reasons why the certificate of a server is not accepted, with the next step. */
const UNKNOWN_AUTHORITY = 'is signed by an unknown authority: put its certificate into ca.crt of the Secret';
const BAD_CERTIFICATES: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: 'has expired: its server needs a new one',
  CERT_NOT_YET_VALID: 'is not valid yet: compare the clocks',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for other names than that in the address',
};

/** The error for an answer with a status other than success. */
export function statusError(url: string, status: number, refusal: Refusal): SluiceError {
  const [code, meaning] = meaningOf(status, refusal);
  const retryAfter = status === 429 || status === 503 ? refusal.retryAfter : undefined;
  const later = retryAfter === undefined ? '' : `; retry after ${retryAfter} s`;
  // A gateway may have lost the response of a server that applied the push. A refusal, or a response that requires a retry,
  // means that nothing was applied.
  const gave = status === 408 || (status >= 500 && status !== 501 && retryAfter === undefined);
  const details: RequestFailure = { status, mayBeApplied: refusal.changesRefs && gave, retryAfter };
  return new SluiceError(code, `remote ${url} ${meaning} (HTTP ${status})${later}`, { details });
}

function meaningOf(status: number, { credentials, location }: Refusal): [ErrorCode, string] {
  if (status >= 300 && status < 400)
    return ['Refused', `redirects elsewhere: use its new address${location === undefined ? '' : `, ${location}`}`];
  if (status === 401) return ['Refused', credentialsMeaning(credentials)];
  if (status === 403) return ['Refused', deniedMeaning(credentials)];
  if (status === 404 || status === 410) return ['NotFound', 'has no such repository'];
  if (status === 407)
    return ['Refused', 'is behind a proxy that requires credentials: put them into the address of the proxy'];
  if (status === 413)
    return ['LimitExceeded', 'does not accept a request of this size: push less at once, or raise its limit'];
  if (status === 408 || status === 504) return ['Timeout', 'did not answer in time'];
  return ['Unavailable', 'is unavailable'];
}

/** The error for a request that got no answer, or not all of one. */
export function connectionError(url: string, error: unknown, changesRefs: boolean): SluiceError {
  const code = codeOf(error);
  const badCertificate = BAD_CERTIFICATES[code];
  if (badCertificate !== undefined) {
    const details: RequestFailure = { mayBeApplied: false };
    const message = `cannot connect to remote ${url}: its certificate ${badCertificate}`;
    return new SluiceError('Refused', message, { cause: error, details });
  }
  const details: RequestFailure = { mayBeApplied: changesRefs && !NEVER_SENT.has(code) };
  const late = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  const why = cleanText(messageOf(error) || code || 'the connection failed', 300);
  return new SluiceError(late ? 'Timeout' : 'Unavailable', `cannot connect to remote ${url}: ${why}`, {
    cause: error,
    details,
  });
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
