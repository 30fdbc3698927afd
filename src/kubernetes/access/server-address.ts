import { isIPv4 } from 'node:net';
import type { SluiceError } from '../../foundation/sluice-error.ts';

/**
 * The address of a server without a slash at its end. Plain HTTP is permitted on this machine only: elsewhere a token could
 * be intercepted. `fail` creates the error.
 */
export function serverAddress(text: string, fail: (problem: string) => SluiceError): string {
  const address = text.includes('://') ? text : `https://${text}`;
  if (!URL.canParse(address)) throw fail('the server must be an address such as https://127.0.0.1:6443');
  const url = new URL(address);
  if (url.username !== '' || url.password !== '')
    throw fail('the server must not contain a password; put it into the user');
  if (url.search !== '' || url.hash !== '') throw fail('the server must be an address without "?" and "#"');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw fail('the server must begin with https://');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw fail(`${url.origin} is neither HTTPS nor on this machine; use https://`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
}
