import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { SluiceError } from '../../foundation/sluice-error.ts';

const MAX_PEM_CHARACTERS = 1024 * 1024;
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The certificates, each as PEM, of the authorities that Sluice trusts for a remote: those that this process trusts by default (see
 * NODE_EXTRA_CA_CERTS and NODE_USE_SYSTEM_CA of Node), those of the operator, and those in `pem`. Undefined if there are no others
 * than those that every program on this machine trusts. Throws InvalidInput if `pem` contains no certificate, or one that cannot be
 * read.
 */
export function trustedAuthorities(pem: string | undefined, operators: string | undefined): string[] | undefined {
  const own = pem === undefined ? [] : certificatesOf(pem);
  if (own === undefined)
    throw new SluiceError(
      'InvalidInput',
      'cannot use ca.crt in the Secret of a remote: invalid PEM; provide certificates in PEM, at most 1 MiB',
    );
  const added = [...own, ...(operators === undefined ? [] : (certificatesOf(operators) ?? []))];
  // Git does not know of the variable.
  if (added.length === 0 && (process.env.NODE_EXTRA_CA_CERTS ?? '') === '') return undefined;
  return [...getCACertificates('default'), ...added];
}

/** The certificates in a text, each as PEM; undefined if there is none, one that cannot be read, or too much. */
export function certificatesOf(pem: string): string[] | undefined {
  const found = pem.length > MAX_PEM_CHARACTERS ? [] : (pem.match(BLOCK) ?? []);
  return found.length > 0 && found.every(isCertificate) ? found : undefined;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
