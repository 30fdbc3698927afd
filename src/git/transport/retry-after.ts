const LONGEST_SECONDS = 86_400;

/** The seconds that a Retry-After header asks for, which may be a number or a date; undefined if it says neither. At most a day. */
export function retryAfterOf(header: string | string[] | undefined, now: number): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined || text.length > 40) return undefined;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), LONGEST_SECONDS);
}
