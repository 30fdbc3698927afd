import type { Rate } from '../budget-usage.ts';
import type { ForgeResponse } from './forge-response.ts';

const MAX_RETRY_AFTER_MS = 3_600_000;
/** GitHub: without a header that says how long, at least a minute. */
export const UNKNOWN_LIMIT_MS = 60_000;

/** Whether a response refuses the request because there were too many. Hosts report limits with 403 too. */
export function isRateLimit({ status, headers, text }: ForgeResponse): boolean {
  if (status === 429) return true;
  const isLimit =
    headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0' || /\brate limit\b/i.test(text);
  return status === 403 && isLimit;
}

/** Milliseconds that the host requires to wait, at most an hour; undefined if it says nothing. */
export function retryAfter(headers: ForgeResponse['headers'], now: number): number | undefined {
  const wait = numberIn(headers['retry-after']);
  if (wait !== undefined) return Math.min(wait * 1000, MAX_RETRY_AFTER_MS);
  const { remaining, resetAt } = rateOf(headers) ?? {};
  return remaining !== 0 || resetAt === undefined
    ? undefined
    : Math.min(Math.max(resetAt - now, 1000), MAX_RETRY_AFTER_MS);
}

/** The primary limit of the account, by the headers of GitHub; undefined where a host has none. */
export function rateOf(headers: ForgeResponse['headers']): Rate | undefined {
  const [remaining, limit, reset] = ['remaining', 'limit', 'reset'].map((name) =>
    numberIn(headers[`x-ratelimit-${name}`]),
  );
  if (remaining === undefined) return undefined;
  return { remaining, limit, resetAt: reset === undefined ? undefined : reset * 1000 };
}

function numberIn(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}
