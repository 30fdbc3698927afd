import type { Dispatcher } from 'undici';
import type { ZodType } from 'zod';
import { type ErrorCode, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { checkRemoteUrl, cleanText } from '../../git/network/remote-url.ts';
import { ConnectionPool } from '../../git/remote/http/connection-pool.ts';
import type { ForgeErrorDetails } from '../forge.ts';

/** Bodies of pull requests have up to 64 kB, and a page has 50 of them. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_RETRY_AFTER_SECONDS = 3600;
const MAX_MESSAGE_CHARACTERS = 300;
/** A token that was replaced is used at most this long. */
const TOKEN_AGE_MS = 60_000;

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

export interface ForgeHttpOptions {
  /** Address of the API. */
  readonly api: string;
  /** Reads the token. Called again after a minute, and when the host does not accept it. */
  readonly token: (signal: AbortSignal) => Promise<string>;
  /** What the token is called in messages, such as `Secret default/forge`. */
  readonly tokenName: string;
  readonly network: GitNetwork;
  /** Milliseconds. Default: the time of the system. */
  readonly now?: () => number;
}

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface ForgeRequest {
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/**
 * Sends requests with a token to the API of a host. The rules for Git hosts apply, redirects are not followed, responses are bounded. Rejects
 * as the contract of `Forge` says.
 */
export class ForgeHttp {
  readonly #options: ForgeHttpOptions;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #pool: ConnectionPool;
  #token: { readonly value: string; readonly readAt: number } | undefined;

  constructor(options: ForgeHttpOptions) {
    const { api, network } = options;
    const url = new URL(api);
    checkRemoteUrl(url.origin, network.hosts);
    this.#options = options;
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#pool = new ConnectionPool(url.origin, network);
  }

  /** Returns the JSON of the response in the form of a schema. */
  async json<Result>(schema: ZodType<Result>, method: Method, path: string, request: ForgeRequest): Promise<Result> {
    const text = await this.send(method, path, request);
    const what = `${method} ${this.#origin}${this.#prefix}${withoutQuery(path)}`;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw new SluiceError('Corrupt', `the response to ${what} is no JSON`);
    }
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = issue === undefined ? '' : `: ${issue.path.join('.')}: ${issue.message}`;
    throw new SluiceError('Corrupt', `the response to ${what} does not have the documented form${where}`);
  }

  /** Returns the body of the response. `path` begins with `/`, without the path of the API. */
  async send(method: Method, path: string, { body, signal }: ForgeRequest): Promise<string> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const token = await this.#readToken(limited);
    const what = `${method} ${this.#origin}${this.#prefix}${withoutQuery(path)}`;
    let status: number;
    let headers: Dispatcher.ResponseData['headers'];
    let text: string;
    try {
      await this.#pool.checkHost();
      const response = await this.#pool.for(undefined).request({
        ...{ origin: this.#origin, method, path: `${this.#prefix}${path}`, signal: limited },
        headers: {
          accept: 'application/json',
          authorization: `token ${token}`,
          'user-agent': 'sluice',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      });
      ({ statusCode: status, headers } = response);
      text = await readBounded(response.body, what);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      signal.throwIfAborted();
      if (limited.aborted) throw new SluiceError('Timeout', `${what}: no response within ${TIMEOUT_MS / 1000} s`);
      throw new SluiceError('Unavailable', `${what}: ${messageOf(error).replaceAll(token, '***')}`);
    }
    if (status >= 200 && status < 300) return text;
    if (status === 401) this.#token = undefined;
    throw this.#errorOf(what, status, headers, text.replaceAll(token, '***'));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #readToken(signal: AbortSignal): Promise<string> {
    const { token, now = Date.now } = this.#options;
    if (this.#token !== undefined && now() - this.#token.readAt < TOKEN_AGE_MS) return this.#token.value;
    const value = await token(signal);
    this.#token = { value, readAt: now() };
    return value;
  }

  #errorOf(
    what: string,
    status: number,
    headers: Dispatcher.ResponseData['headers'],
    text: string,
  ): SluiceError<ForgeErrorDetails> {
    const { tokenName } = this.#options;
    const limited = status === 429 || (status === 403 && isLimit(headers, text));
    const code = limited ? 'TooManyRequests' : (CODES[status] ?? (status >= 500 ? 'Unavailable' : 'Refused'));
    const said = hostMessage(text);
    const next: Partial<Record<ErrorCode, string>> = {
      Unauthenticated: `the token of ${tokenName} is not valid; put a new one there`,
      NotFound: `it does not exist, or the token of ${tokenName} cannot read it`,
      ...(status === 403 && !limited ? { Refused: `the token of ${tokenName} lacks a permission for it` } : {}),
      ...(status >= 300 && status < 400
        ? { Refused: 'the host redirects it, as for a repository that was renamed; register its new address' }
        : {}),
    };
    const parts = [`status ${status}`, said, next[code]].filter((part) => part !== undefined && part !== '');
    const retryAfterMs = retryAfter(headers['retry-after']);
    return new SluiceError(code, `${what}: ${parts.join('; ')}`, { details: { status, retryAfterMs } });
  }
}

/** Queries can contain names of users, and add nothing to a message. */
function withoutQuery(path: string): string {
  return path.split('?', 1)[0] ?? '';
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
      throw new SluiceError('Corrupt', `the response to ${what} is longer than ${MAX_RESPONSE_BYTES} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Hosts report limits with 403 too. */
function isLimit(headers: Dispatcher.ResponseData['headers'], text: string): boolean {
  return (
    headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0' || /\brate limit\b/i.test(text)
  );
}

/** The message of the host, on one line, without what could mislead. */
function hostMessage(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string'
      ? cleanText(message).replaceAll(/\s+/g, ' ').slice(0, MAX_MESSAGE_CHARACTERS)
      : '';
  } catch {
    return '';
  }
}

function retryAfter(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  if (!/^\d{1,6}$/.test(text)) return undefined;
  return Math.min(Number(text), MAX_RETRY_AFTER_SECONDS) * 1000;
}
