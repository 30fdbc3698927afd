import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { GitNetwork } from '../../src/git/network/git-network.ts';
import { checkRemoteUrl } from '../../src/git/network/remote-url.ts';
import { ConnectionPool } from '../../src/git/remote/http/connection-pool.ts';

/** A value and the number of its samples are small. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

/** One request to a source of values. */
export interface SourceRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** PEM of authorities that are trusted in addition. */
  readonly authorities?: string | undefined;
  /** True if the certificate of the source is not to be verified. */
  readonly insecure?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Sends a request under the rules for Git hosts, and without following redirects. Returns the JSON of a response with a status of 200 to 299.
 * Rejects with a SluiceError otherwise; it names the origin only, and contains nothing of headers, the path, or the response.
 */
export type FetchJson = (request: SourceRequest) => Promise<unknown>;

/** Each request has a connection of its own, so that a slow source delays no other, and a host is checked again each time. */
export function fetchJson(network: GitNetwork): FetchJson {
  return async ({ url, method, headers, body, authorities, insecure, signal }) => {
    const { origin, pathname, search } = new URL(url);
    checkRemoteUrl(origin, network.hosts);
    const pool = new ConnectionPool(origin, network, { isVerified: insecure !== true });
    try {
      await pool.checkHost();
      const response = await pool.for(authorities).request({
        ...{ origin, method, path: `${pathname}${search}`, signal, body: body ?? null },
        headers: { ...headers, accept: 'application/json', 'user-agent': 'sluice' },
        headersTimeout: 60_000,
      });
      const { statusCode: status } = response;
      if (status < 200 || status >= 300) {
        response.body.on('error', () => undefined);
        response.body.destroy();
        throw new SluiceError('Unavailable', `cannot read from ${origin}: it returned ${status}${hint(status)}`);
      }
      return parse(origin, await readBounded(origin, response.body));
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      const why = signal.aborted ? 'it did not respond in time' : messageOf(error).replaceAll(url, origin);
      throw new SluiceError('Unavailable', `cannot read from ${origin}: ${why}`);
    } finally {
      await pool.close();
    }
  };
}

function hint(status: number): string {
  if (status >= 300 && status < 400) return ', a redirect, which is not followed; use the final address';
  if (status === 400 || status === 422) return '; check the query';
  if (status === 401 || status === 403) return '; check the Secret of secretRef or basicAuthSecretRef';
  return status === 404 ? '; check the address' : '';
}

async function readBounded(
  origin: string,
  body: AsyncIterable<Uint8Array> & { destroy(): void; on(event: 'error', listener: () => void): unknown },
): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > MAX_RESPONSE_BYTES) {
      body.on('error', () => undefined);
      body.destroy();
      throw new SluiceError(
        'LimitExceeded',
        `cannot read from ${origin}: the response has more than ${MAX_RESPONSE_BYTES} bytes; write a query with a smaller result`,
      );
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function parse(origin: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The text can quote what was sent.
    throw new SluiceError('InvalidInput', `cannot read from ${origin}: the response is no JSON; check the address`);
  }
}
