import type { TlsOptions } from 'node:tls';
import type { Pki } from './open-pki.ts';

/**
 * The TLS options of the server. It requests a client certificate of our own authority and of no other, and accepts clients without a valid
 * one, since they may authenticate by a token.
 */
export function tlsOptions({ authority, server }: Pki) {
  return {
    cert: server.certificate,
    key: server.key,
    ca: authority,
    requestCert: true,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
  } as const satisfies TlsOptions;
}
