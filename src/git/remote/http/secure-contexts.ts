import { createHash } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { trustedAuthorities } from '../../network/certificate-authorities.ts';

/** A context with the authorities of an operating system has about 2 MB. */
const MAX_CONTEXTS = 32;

/** Those of all connections of the process: to read hundreds of authorities takes tens of milliseconds and blocks the event loop. */
const contexts = new LruCache<string, SecureContext>({ maxEntries: MAX_CONTEXTS });

/**
 * The TLS context of connections that trust `authorities` and those of the operator, shared by all with the same ones. Undefined if
 * the default context is to be used. Throws InvalidInput if `authorities` cannot be read.
 */
export function secureContextFor(
  authorities: string | undefined,
  operators: string | undefined,
): SecureContext | undefined {
  const source = JSON.stringify([process.env.NODE_EXTRA_CA_CERTS ?? '', authorities ?? null, operators ?? null]);
  const key = createHash('sha256').update(source).digest('base64');
  const kept = contexts.get(key);
  if (kept !== undefined) return kept;
  const trusted = trustedAuthorities(authorities, operators);
  if (trusted === undefined) return undefined;
  const context = createSecureContext({ ca: trusted });
  contexts.set(key, context);
  return context;
}
