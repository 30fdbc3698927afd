/**
 * True if so many milliseconds have passed since a time, or if the clock was set back to before it, so that no work waits for the
 * clock to catch up.
 */
export function elapsed(now: number, since: number, milliseconds: number): boolean {
  return now - since >= milliseconds || now < since;
}
