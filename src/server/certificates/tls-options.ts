import type { TlsOptions } from 'node:tls';
import type { Pki } from './open-pki.ts';

/**
 * How the server speaks TLS. It asks for a client certificate of our own authority and of no other, and lets clients without
 * a good one in, since they may prove who they are by a token.
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
