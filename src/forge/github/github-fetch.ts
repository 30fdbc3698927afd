import { LruCache } from '../../foundation/lru-cache.ts';
import type { ForgeResponse, Method } from '../http/forge-response.ts';
import { type ForgeTransport, requestName } from '../http/forge-transport.ts';
import { isRateLimit } from '../http/rate-limit.ts';

const API_VERSION = '2022-11-28';
/** Of the responses that are kept for conditional requests. */
const MAX_ENTRIES = 500;
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** Headers that errors are made of, or that octokit corrects the clock with. */
const PASSED = [
  'date',
  'retry-after',
  'x-accepted-github-permissions',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const;
const NO_SIGNAL = new AbortController().signal;

/** The arguments that octokit calls `fetch` with. */
interface FetchOptions {
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | null;
  readonly signal?: AbortSignal | null;
}

export interface AccountToken {
  readonly token: string;
  /** See `ForgeRequest`. */
  readonly account: string;
}

/** In place of the global `fetch`. */
export type GithubFetch = (url: string, options: FetchOptions) => Promise<Response>;

/**
 * The `fetch` of octokit, over the connections of Sluice. GitHub does not count a conditional request whose response has not changed, so that
 * each GET is one; octokit sees the whole response in any case. `readToken` returns the token, which octokit then never sees; without it, octokit authenticates.
 */
export function githubFetch(
  transport: ForgeTransport,
  readToken?: (signal: AbortSignal) => Promise<AccountToken>,
): GithubFetch {
  const kept = new LruCache<string, ForgeResponse & { readonly etag: string }>({
    maxEntries: MAX_ENTRIES,
    maxSize: MAX_CHARACTERS,
  });

  return async (url, { method, headers: given, body = null, signal }) => {
    const limit = signal ?? NO_SIGNAL;
    // Octokit reports an aborted signal as a failure of the request.
    limit.throwIfAborted();
    const { token, account } = (await readToken?.(limit)) ?? {};
    const authorization = token === undefined ? given.authorization : `Bearer ${token}`;
    const known = method === 'GET' ? kept.get(url) : undefined;
    const headers = {
      ...given,
      ...{ ...(authorization === undefined ? {} : { authorization }), 'x-github-api-version': API_VERSION },
      ...(known === undefined ? {} : { 'if-none-match': known.etag }),
    };
    const secret = authorization?.split(' ').at(-1) || undefined;
    const response = await transport.send({ url, method, headers, body, secret, account, signal: limit });
    if (response.status === 304 && known !== undefined) return responseOf(url, known);
    const isRedirect = response.status >= 300 && response.status < 400;
    // What octokit takes for a success: a redirect, and a limit that GraphQL reports.
    if (isRedirect || (response.status === 200 && isRateLimit(response)))
      throw transport.errorOf(requestName(method, url), response);
    const { etag } = response.headers;
    if (method === 'GET' && response.status === 200 && typeof etag === 'string')
      kept.set(url, { ...response, etag }, response.text.length);
    return responseOf(url, response);
  };
}

function responseOf(url: string, { status, headers, text }: ForgeResponse): Response {
  const entries = PASSED.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const hasBody = status !== 204 && status !== 205;
  // Octokit reads any other type in ways of its own.
  const response = new Response(hasBody ? text : null, {
    status,
    headers: [...entries, ['content-type', 'application/json; charset=utf-8']],
  });
  return Object.defineProperty(response, 'url', { value: url });
}
