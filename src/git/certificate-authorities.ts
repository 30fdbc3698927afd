import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { SluiceError } from '../foundation/sluice-error.ts';

const LONGEST = 1024 * 1024;
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The certificates, each as PEM, of the authorities that a remote is trusted by: those that this process trusts anyway (see
 * NODE_EXTRA_CA_CERTS and NODE_USE_SYSTEM_CA of Node), and those in `pem`. Throws InvalidInput if `pem` holds none, or one that
 * cannot be read.
 */
export function trustedAuthorities(pem: string): string[] {
  const own = pem.length > LONGEST ? [] : (pem.match(BLOCK) ?? []);
  if (own.length === 0 || !own.every(isCertificate))
    throw new SluiceError(
      'InvalidInput',
      'the authorities of a remote (ca.crt in its Secret) cannot be used: give certificates in PEM, at most 1 MiB',
    );
  return [...getCACertificates('default'), ...own];
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
