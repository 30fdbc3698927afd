/** Nobody is kept waiting longer than this for the next try. */
const LONGEST = 30_000;

/**
 * Milliseconds to wait before the next try: what the server asks for in `retryAfter` seconds, else doubling from `first`;
 * spread a little so that many clients do not come back at once. Undefined if the server asks for more than 30 seconds.
 */
export function retryDelay(
  attempt: number,
  retryAfter: number | undefined,
  random: () => number,
  first: number,
): number | undefined {
  const asked = retryAfter === undefined ? first * 2 ** (attempt - 1) : retryAfter * 1000;
  return asked > LONGEST ? undefined : asked * (1 + random() / 4);
}
