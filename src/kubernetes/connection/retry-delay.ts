/** The longest delay before an attempt. */
const MAX_DELAY_MS = 30_000;

/**
 * Milliseconds to wait before the next attempt: `retryAfter` seconds if the server requests a delay, else doubling from `first`;
 * with jitter, so that many clients do not retry at once. Undefined if the server requests more than 30 seconds.
 */
export function retryDelay(
  attempt: number,
  retryAfter: number | undefined,
  random: () => number,
  first: number,
): number | undefined {
  const requested = retryAfter === undefined ? first * 2 ** (attempt - 1) : retryAfter * 1000;
  return requested > MAX_DELAY_MS ? undefined : requested * (1 + random() / 4);
}
