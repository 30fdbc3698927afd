import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { ClusterAccess } from '../access/cluster-access.ts';

/** Codes of errors after which it is certain or likely that a server went away while the connection was open. */
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

/** True if the connection broke while a request was on its way or an answer was read. */
export function isReset(error: unknown): boolean {
  return RESET.has(codeOf(error));
}

/** Says in plain words why a server could not be talked to, and what to do. Timeout or Unavailable. */
export function connectionError(error: unknown, access: ClusterAccess): SluiceError {
  const code = codeOf(error);
  const late = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  return new SluiceError(late ? 'Timeout' : 'Unavailable', `${explain(code, error, access)} (${access.source})`, {
    cause: error,
  });
}

function explain(code: string, error: unknown, access: ClusterAccess): string {
  const { tls, proxy } = access;
  // Without what may stand before its host: a password.
  const server = proxy === undefined ? access.server : `${access.server} through the proxy ${new URL(proxy).host}`;
  if (code === 'ECONNREFUSED')
    return `nothing listens at ${server}: start the server, or use the kubeconfig of another`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the name of the server ${server} is not known here: look at the kubeconfig and at the network`;
  if (['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code))
    return `${server} cannot be reached: look at the address and at the network`;
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return `${server} does not go on answering: try again, and look at the server if that does not help`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of ${server} is for another name: use the name it was made for, or set tls-server-name`;
  if (UNTRUSTED.has(code)) {
    const known =
      tls.ca === undefined
        ? 'the kubeconfig names no certificate-authority'
        : 'it is not of the certificate-authority of the kubeconfig, or not valid now';
    return `the certificate of ${server} is not trusted (${code}): ${known}; take the kubeconfig that the server wrote last`;
  }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `${server} does not speak HTTPS: look at the address in the kubeconfig`;
  if (isReset(error))
    return `${server} broke the connection off: what was asked for may be done or not; look before you try again`;
  return `${server} cannot be talked to: ${messageOf(error)}`;
}

/** The code of an error, or of the first below it that has one: several addresses of one name fail together. */
function codeOf(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    const inner: unknown = current instanceof AggregateError ? current.errors[0] : current.cause;
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = inner;
  }
  return '';
}
