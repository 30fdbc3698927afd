import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitCredentials } from '../../git/git-repository.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { checkRemoteUrl } from '../../git/network/remote-url.ts';
import { ConnectionPool } from '../../git/remote/http/connection-pool.ts';

const TIMEOUT_MS = 15_000;
const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;

export interface HostDocumentsOptions {
  readonly network: GitNetwork;
  /** Of the repository; sent as a user and a password, of which hosts accept a token. */
  readonly credentials?: () => Promise<GitCredentials>;
}

/** Reads JSON of the API of a Git host, under the rules for Git remotes: permitted hosts, their authorities, no redirects. */
export class HostDocuments {
  readonly #options: HostDocumentsOptions;
  readonly #pools = new Map<string, ConnectionPool>();

  constructor(options: HostDocumentsOptions) {
    this.#options = options;
  }

  /**
   * Undefined for 404. Throws Refused and Unauthenticated for 403 and 401, Unavailable for other statuses and failed connections, and
   * InvalidInput for what is no JSON.
   */
  readonly read = async (url: string, signal: AbortSignal): Promise<unknown> => {
    const { network, credentials } = this.#options;
    const { origin, pathname, search } = new URL(url);
    checkRemoteUrl(`${origin}${pathname}`, network.hosts);
    const pool = this.#pools.get(origin) ?? new ConnectionPool(origin, network);
    this.#pools.set(origin, pool);
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { basic, certificateAuthorities } = (await credentials?.()) ?? {};
    try {
      await pool.checkHost();
      const response = await pool.for(certificateAuthorities).request({
        ...{ origin, method: 'GET', path: `${pathname}${search}`, signal: timeout },
        headers: {
          accept: 'application/json',
          'user-agent': 'sluice',
          ...(basic === undefined
            ? {}
            : { authorization: `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}` }),
        },
      });
      const text = await this.#read(response.body);
      if (response.statusCode === 404) return undefined;
      if (response.statusCode !== 200) throw statusError(`${origin}${pathname}`, response.statusCode);
      return parse(`${origin}${pathname}`, text);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      const message =
        timeout.aborted && !signal.aborted ? `no response within ${TIMEOUT_MS / 1000} s` : messageOf(error);
      throw new SluiceError('Unavailable', `cannot read ${origin}${pathname}: ${message}`, { cause: error });
    }
  };

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<string> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of body) {
      size += part.length;
      if (size > MAX_DOCUMENT_BYTES)
        throw new SluiceError('LimitExceeded', `the response has more than ${MAX_DOCUMENT_BYTES} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts).toString('utf8');
  }
}

/** Without the text of the response, which can quote what was sent. */
function statusError(url: string, status: number): SluiceError {
  const code = status === 401 ? 'Unauthenticated' : status === 403 ? 'Refused' : 'Unavailable';
  const next =
    status === 401 || status === 403
      ? 'check that the Secret of spec.git.secretRef has a token that may read commit statuses'
      : 'it is tried again';
  return new SluiceError(code, `cannot read ${url}: the host returned ${status}; ${next}`);
}

function parse(url: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SluiceError('InvalidInput', `cannot read ${url}: the host returned no JSON`);
  }
}
