import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { ClusterAccess } from '../access/cluster-access.ts';

/** Codes of errors that mean, certainly or probably, that the server closed an open connection. */
const RESET = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

const UNTRUSTED = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
]);

/** True if the connection broke during a request or while a response was read. */
export function isReset(error: unknown): boolean {
  return RESET.has(codeOf(error));
}

/** True if the certificate of the server is not from a trusted authority, or not valid now. */
export function isUntrusted(error: unknown): boolean {
  return UNTRUSTED.has(codeOf(error));
}

/** Explains why connecting to a server failed, with the next step. Timeout or Unavailable. */
export function connectionError(error: unknown, access: ClusterAccess): SluiceError {
  const code = codeOf(error);
  const late = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  return new SluiceError(late ? 'Timeout' : 'Unavailable', `${explain(code, error, access)} (${access.source})`, {
    cause: error,
  });
}

function explain(code: string, error: unknown, access: ClusterAccess): string {
  const { tls, proxy } = access;
  // Without the part before its host, which may be a password.
  const server = proxy === undefined ? access.server : `${access.server} through the proxy ${new URL(proxy).host}`;
  if (code === 'ECONNREFUSED')
    return `cannot connect to ${server}: no server listens there; start it or wait for it, and check the address in the kubeconfig`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `cannot connect to ${server}: its name cannot be resolved; check the kubeconfig and the network`;
  if (['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code))
    return `cannot connect to ${server}: it cannot be reached; check the address and the network`;
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return `the response of ${server} timed out: try again, and check the server if that does not help`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of ${server} is for another name: use the name that it was issued for, or set tls-server-name`;
  if (isUntrusted(error)) {
    const known =
      tls.ca === undefined
        ? 'the kubeconfig names no certificate-authority'
        : 'it is not from the certificate-authority of the kubeconfig, or not valid now';
    return `the certificate of ${server} is not trusted (${code}): ${known}; use a kubeconfig with its present authority ("sluice up" writes one at each start)`;
  }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `${server} does not speak HTTPS: check the address in the kubeconfig`;
  if (isReset(error))
    return `${server} closed the connection: the outcome of the request is unknown; check it before you try again`;
  return `cannot connect to ${server}: ${messageOf(error)}`;
}

/** The code of an error, or of its first cause with one: several addresses of one name fail together. */
function codeOf(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    const inner: unknown = current instanceof AggregateError ? current.errors[0] : current.cause;
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = inner;
  }
  return '';
}
