const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A span of time as kubectl shows it: `12s`, `3m20s`, `5h`, `4d`, `2y30d`. Milliseconds; never negative. */
export function shortDuration(milliseconds: number): string {
  const span = Math.max(0, milliseconds);
  if (span < 2 * MINUTE) return `${Math.floor(span / SECOND)}s`;
  if (span < 10 * MINUTE) return two(span, MINUTE, 'm', SECOND, 's');
  if (span < 3 * HOUR) return `${Math.floor(span / MINUTE)}m`;
  if (span < 8 * HOUR) return two(span, HOUR, 'h', MINUTE, 'm');
  if (span < 2 * DAY) return `${Math.floor(span / HOUR)}h`;
  if (span < 8 * DAY) return two(span, DAY, 'd', HOUR, 'h');
  if (span < 2 * YEAR) return `${Math.floor(span / DAY)}d`;
  if (span < 8 * YEAR) return two(span, YEAR, 'y', DAY, 'd');
  return `${Math.floor(span / YEAR)}y`;
}

/** How long ago a time (RFC 3339) was; `<unknown>` if it is none. */
export function age(time: string | undefined, now: number): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? '<unknown>' : shortDuration(now - at);
}

function two(span: number, unit: number, name: string, smaller: number, smallerName: string): string {
  const rest = Math.floor((span % unit) / smaller);
  return `${Math.floor(span / unit)}${name}${rest === 0 ? '' : `${rest}${smallerName}`}`;
}
