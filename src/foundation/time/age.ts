const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

/** A span of time as kubectl shows it: `12s`, `3m20s`, `5h`, `4d`, `2y30d`. Milliseconds; never negative. */
export function shortDuration(milliseconds: number): string {
  const span = Math.max(0, milliseconds);
  if (span < 2 * MINUTE_MS) return `${Math.floor(span / SECOND_MS)}s`;
  if (span < 10 * MINUTE_MS) return two(span, MINUTE_MS, 'm', SECOND_MS, 's');
  if (span < 3 * HOUR_MS) return `${Math.floor(span / MINUTE_MS)}m`;
  if (span < 8 * HOUR_MS) return two(span, HOUR_MS, 'h', MINUTE_MS, 'm');
  if (span < 2 * DAY_MS) return `${Math.floor(span / HOUR_MS)}h`;
  if (span < 8 * DAY_MS) return two(span, DAY_MS, 'd', HOUR_MS, 'h');
  if (span < 2 * YEAR_MS) return `${Math.floor(span / DAY_MS)}d`;
  if (span < 8 * YEAR_MS) return two(span, YEAR_MS, 'y', DAY_MS, 'd');
  return `${Math.floor(span / YEAR_MS)}y`;
}

/** Formats the time since a timestamp (RFC 3339); `<unknown>` if it is invalid. */
export function age(time: string | undefined, now: number): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? '<unknown>' : shortDuration(now - at);
}

function two(span: number, unit: number, name: string, smaller: number, smallerName: string): string {
  const rest = Math.floor((span % unit) / smaller);
  return `${Math.floor(span / unit)}${name}${rest === 0 ? '' : `${rest}${smallerName}`}`;
}
