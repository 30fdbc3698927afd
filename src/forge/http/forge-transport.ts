import { type ErrorCode, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../../foundation/text/clean-text.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { checkRemoteUrl } from '../../git/network/remote-url.ts';
import { ConnectionPool } from '../../git/remote/http/connection-pool.ts';
import type { ForgeErrorDetails } from '../forge.ts';
import { invalidTokenText, notFoundText, unreachedText } from './error-texts.ts';
import type { ForgeBudgets } from './forge-budgets.ts';
import type { ForgeResponse, Method } from './forge-response.ts';
import { isRateLimit, retryAfter, UNKNOWN_LIMIT_MS } from './rate-limit.ts';

/** Bodies of pull requests have up to 256 kB, and a page has up to 100 of them; most have some kB. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_MESSAGE_CHARACTERS = 300;
const MAX_REASONS = 5;
const SUSPENDED = 'an owner has to resume the installation of the App in its settings';

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'InvalidInput',
  401: 'Unauthenticated',
  403: 'Refused',
  404: 'NotFound',
  405: 'Refused',
  409: 'Conflict',
  413: 'InvalidInput',
  422: 'InvalidInput',
  423: 'Refused',
  429: 'TooManyRequests',
};

export interface ForgeTransportOptions {
  /** Address of the API. */
  readonly api: string;
  /** Further addresses on the same host that requests may go to. */
  readonly besides?: readonly string[];
  /** What the token is called in messages, such as `Secret default/forge`. */
  readonly tokenName: string;
  readonly network: GitNetwork;
  /** Milliseconds. Default: the time of the system. */
  readonly now?: () => number;
  /** Milliseconds of one request. Default 30,000. */
  readonly timeoutMs?: number;
  /** What all repositories with the same credentials share. Default: no limits but those that the host reports. */
  readonly budgets?: ForgeBudgets;
}

export interface ForgeRequest {
  /** The address, below that of the API, or one of `besides`. */
  readonly url: string;
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The token in the headers, which no message may contain. */
  readonly secret: string | undefined;
  /** Identity of the credentials that the host limits, without a secret: requests with the same one share a budget. Default: none. */
  readonly account?: string | undefined;
  readonly signal: AbortSignal;
}

/** Sends requests to the API of a host. The rules for Git hosts apply, redirects are not followed, responses are bounded. */
export class ForgeTransport {
  /** Address of the API, without a slash at the end. */
  readonly api: string;
  readonly #options: ForgeTransportOptions;
  readonly #pool: ConnectionPool;

  constructor(options: ForgeTransportOptions) {
    const { api, network } = options;
    const url = new URL(api);
    checkRemoteUrl(url.origin, network.hosts);
    this.#options = options;
    this.api = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
    this.#pool = new ConnectionPool(url.origin, network);
  }

  /**
   * Returns a response with any status. Rejects as the contract of `Forge` says where there is none, or a too long one, and where the budget of
   * the account permits no request now.
   */
  send(request: ForgeRequest): Promise<ForgeResponse> {
    const { url, method, account, signal } = request;
    const { budgets, tokenName } = this.#options;
    if (budgets === undefined || account === undefined) return this.#send(request);
    const budget = budgets.of({ api: this.api, account, name: tokenName });
    return budget.run({ what: requestName(method, url), method, url, signal }, () => this.#send(request));
  }

  async #send({ url, method, headers, body, secret, signal }: ForgeRequest): Promise<ForgeResponse> {
    const { besides = [], timeoutMs = TIMEOUT_MS } = this.#options;
    const what = requestName(method, url);
    // A token is for this host only.
    if (!url.startsWith(`${this.api}/`) && !besides.includes(url))
      throw new SluiceError('Internal', `${what} is not below ${this.api}`);
    const { origin, pathname, search } = new URL(url);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let response: ForgeResponse;
    try {
      await this.#pool.checkHost();
      const read = await this.#pool.for(undefined).request({
        ...{ origin, method, path: `${pathname}${search}`, signal: limited, headers, body },
      });
      response = { status: read.statusCode, headers: read.headers, text: await readBounded(read.body, what) };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      signal.throwIfAborted();
      if (limited.aborted)
        throw new SluiceError('Timeout', `${what}: no response within ${timeoutMs / 1000} s; ${unreachedText()}`);
      throw new SluiceError('Unavailable', `${what}: ${withoutSecret(messageOf(error), secret)}; ${unreachedText()}`);
    }
    return response.status < 300 ? response : { ...response, text: withoutSecret(response.text, secret) };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** The error that a response with another status than 2xx is. `what` is the name of the request. */
  errorOf(what: string, { status, headers, text }: ForgeResponse): SluiceError<ForgeErrorDetails> {
    const { tokenName, now = Date.now } = this.#options;
    const limited = isRateLimit({ status, headers, text });
    const code = limited ? 'TooManyRequests' : (CODES[status] ?? (status >= 500 ? 'Unavailable' : 'Refused'));
    const needed = headers['x-accepted-github-permissions'];
    const missing = typeof needed === 'string' && needed !== '' ? ` (${cleanText(needed, 200)})` : '';
    const next: Partial<Record<ErrorCode, string>> = {
      Unauthenticated: invalidTokenText(tokenName),
      NotFound: notFoundText(tokenName),
      ...(status === 403 && !limited
        ? {
            Refused: /installation has been suspended/i.test(text)
              ? SUSPENDED
              : `the token of ${tokenName} lacks a permission for it${missing}`,
          }
        : {}),
      ...(status >= 300 && status < 400
        ? { Refused: 'the host redirects it, as for a repository that was renamed; register its new address' }
        : {}),
    };
    const parts = [`status ${status}`, hostMessage(text), next[code]].filter(
      (part) => part !== undefined && part !== '',
    );
    const retryAfterMs = retryAfter(headers, now()) ?? (limited ? UNKNOWN_LIMIT_MS : undefined);
    return new SluiceError(code, `${what}: ${parts.join('; ')}`, { details: { status, retryAfterMs } });
  }
}

/** The name of a request in messages. Queries can contain names of users, and add nothing to it. */
export function requestName(method: string, url: string): string {
  return `${method} ${url.split('?', 1)[0] ?? ''}`;
}

function withoutSecret(text: string, secret: string | undefined): string {
  return secret === undefined ? text : text.replaceAll(secret, '***');
}

async function readBounded(
  body: AsyncIterable<Uint8Array> & { destroy(): void; on(event: 'error', listener: () => void): unknown },
  what: string,
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
        `the response to ${what} is longer than ${MAX_RESPONSE_BYTES} bytes; shorten its texts on the host`,
      );
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** The message of the host and its reasons, on one line, without what could mislead. */
function hostMessage(text: string): string {
  let said: { message?: unknown; errors?: unknown };
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    return '';
  }
  const errors: unknown[] = Array.isArray(said?.errors) ? said.errors.slice(0, MAX_REASONS) : [];
  const reasons = errors.map((error) =>
    typeof error === 'object' && error !== null && 'message' in error ? error.message : error,
  );
  return [said?.message, ...reasons]
    .filter((part) => typeof part === 'string')
    .map((part) => shorten(cleanText(part).replaceAll(/\s+/g, ' '), MAX_MESSAGE_CHARACTERS))
    .join(': ');
}
