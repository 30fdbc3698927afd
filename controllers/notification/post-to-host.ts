import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { GitNetwork } from '../../src/git/network/git-network.ts';
import { checkRemoteUrl } from '../../src/git/network/remote-url.ts';
import { ConnectionPool } from '../../src/git/remote/http/connection-pool.ts';
import type { Post } from './receiver.ts';

/** Of a response, which is not interpreted; a connection with a longer one is closed. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_RETRY_AFTER_SECONDS = 3600;

/**
 * Posts JSON to an address that a user of the API chose: the rules for Git hosts apply, also to the address that a name leads to; a redirect
 * is returned and not followed. Each request has a connection of its own, so that a slow receiver delays no other.
 */
export function postToHost(network: GitNetwork): Post {
  return async ({ url, headers, body, authorities, signal }) => {
    const { origin, pathname, search } = parse(url);
    // Paths and queries can be credentials, so errors contain the origin only.
    checkRemoteUrl(origin, network.hosts);
    const pool = new ConnectionPool(origin, network);
    try {
      await pool.checkHost();
      const response = await pool.for(authorities).request({
        ...{ origin, method: 'POST', path: `${pathname}${search}`, body, signal },
        headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'sluice' },
        headersTimeout: 30_000,
      });
      await discard(response.body);
      return { status: response.statusCode, retryAfterMs: retryAfter(response.headers['retry-after']) };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      const why = signal.aborted ? 'it did not respond in time' : messageOf(error).replaceAll(url, origin);
      throw new SluiceError('Unavailable', `cannot send to ${origin}: ${why}; it is tried again`);
    } finally {
      await pool.close();
    }
  };
}

function parse(url: string): URL {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.password !== '')
    throw new SluiceError(
      'InvalidInput',
      'cannot send: the address is no http:// or https:// URL without a user name or password; correct it',
    );
  return parsed;
}

/** The status is known; what a receiver writes besides does not count, however long it is or takes. */
async function discard(
  body: AsyncIterable<Uint8Array> & { destroy(): void; on(event: 'error', listener: () => void): unknown },
) {
  body.on('error', () => undefined);
  let size = 0;
  try {
    for await (const part of body) {
      size += part.length;
      if (size > MAX_RESPONSE_BYTES) break;
    }
  } catch {
    // Closed by the receiver or by the time limit, after its status.
  }
  body.destroy();
}

function retryAfter(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(0, seconds), MAX_RETRY_AFTER_SECONDS) * 1000;
}
