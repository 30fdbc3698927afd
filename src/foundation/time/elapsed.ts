/** True if so many milliseconds have passed since a time, or if the clock was set back behind it, so that no work waits until that time comes again. */
export function elapsed(now: number, since: number, milliseconds: number): boolean {
  return now - since >= milliseconds || now < since;
}
