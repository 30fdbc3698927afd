import type { Clock } from './clock.ts';

/** What goes on is repeated this often, and not at every attempt. */
const REPEAT_MS = 5 * 60_000;
const MAX_REMEMBERED = 200;

/** Returns a function that is true for a text that it was not called with in the last five minutes. */
export function unlessRepeated(clock: Clock): (text: string) => boolean {
  const reported = new Map<string, number>();
  return (text) => {
    const atMs = reported.get(text);
    if (atMs !== undefined && clock.monotonic() - atMs < REPEAT_MS) return false;
    if (reported.size >= MAX_REMEMBERED) reported.clear();
    reported.set(text, clock.monotonic());
    return true;
  };
}
