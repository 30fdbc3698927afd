import type { LimitedResource, Rate } from '../budget-usage.ts';
import type { ForgeResponse } from './forge-response.ts';

const MAX_RETRY_AFTER_MS = 3_600_000;
/** GitHub: without a header that says how long, at least a minute. */
export const UNKNOWN_LIMIT_MS = 60_000;
/** What GraphQL calls it; the second one is not documented. */
const GRAPHQL_TYPES: readonly unknown[] = ['RATE_LIMITED', 'RATE_LIMIT'];

/** Whether a response refuses the request because there were too many. Hosts report limits with 403 too, and GraphQL with 200. */
export function isRateLimit({ status, headers, text }: ForgeResponse): boolean {
  if (status === 429) return true;
  if (status === 200) return hasLimitError(text);
  const isLimit =
    headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0' || /\brate limit\b/i.test(text);
  return status === 403 && isLimit;
}

/** Milliseconds that the host requires to wait, at most an hour; undefined if it says nothing. */
export function retryAfter(headers: ForgeResponse['headers'], now: number): number | undefined {
  const wait = numberIn(headers['retry-after']);
  return wait === undefined ? untilReset(headers, now) : Math.min(wait * 1000, MAX_RETRY_AFTER_MS);
}

/** Milliseconds until the primary limit is reset, at most an hour; undefined while it permits requests. */
export function untilReset(headers: ForgeResponse['headers'], now: number): number | undefined {
  const { remaining, resetAt } = rateOf(headers) ?? {};
  return remaining !== 0 || resetAt === undefined
    ? undefined
    : Math.min(Math.max(resetAt - now, 1000), MAX_RETRY_AFTER_MS);
}

/** Whether the limit that a response reports is one of all requests, beside the primary one. */
export function isSecondaryLimit({ headers, text }: ForgeResponse): boolean {
  const { remaining, resetAt } = rateOf(headers) ?? {};
  const isPrimary = remaining === 0 && resetAt !== undefined && headers['retry-after'] === undefined;
  return !isPrimary || /\bsecondary rate limit\b/i.test(text);
}

/** What a request counts against. GitHub limits GraphQL apart from REST. */
export function resourceOf(url: string): LimitedResource {
  return new URL(url).pathname.endsWith('/graphql') ? 'graphql' : 'core';
}

/** The primary limit of the account, by the headers of GitHub; undefined where a host has none. */
export function rateOf(headers: ForgeResponse['headers']): Rate | undefined {
  const [remaining, limit, reset] = ['remaining', 'limit', 'reset'].map((name) =>
    numberIn(headers[`x-ratelimit-${name}`]),
  );
  if (remaining === undefined) return undefined;
  return { remaining, limit, resetAt: reset === undefined ? undefined : reset * 1000 };
}

/** Whether a response of GraphQL has an error about a limit. Names of users in other errors do not count. */
function hasLimitError(text: string): boolean {
  // Responses are long, and few have errors; in a text of users the quotes have a backslash.
  if (!text.includes('"errors"')) return false;
  let errors: unknown;
  try {
    ({ errors } = JSON.parse(text) as { readonly errors?: unknown });
  } catch {
    return false;
  }
  return Array.isArray(errors) && errors.some(isLimitError);
}

function isLimitError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { type, message } = error as { readonly type?: unknown; readonly message?: unknown };
  if (GRAPHQL_TYPES.includes(type)) return true;
  const pattern = type === undefined || type === null ? /\brate limit\b/i : /\bsecondary rate limit\b/i;
  return typeof message === 'string' && pattern.test(message);
}

function numberIn(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}
