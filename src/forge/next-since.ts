import { timestamp } from '../foundation/time/clock.ts';
import type { PullRequest } from './forge.ts';

/** The clocks of this machine and of a host differ by at most this much. */
export const CLOCKS_MS = 600_000;
/** A host whose clock is that much ahead makes later changes, by a corrected clock, be missed for that long at most. */
const SKEW_MS = 30_000;

/**
 * From when on the next list has to be read, RFC 3339, after a complete list since a time. Times that are later than now come from a host whose
 * clock was ahead, or are read by a machine whose clock is behind: what changes next can be earlier than they are.
 */
export function nextSince(since: string, listed: readonly Pick<PullRequest, 'updatedAt'>[], nowMs: number): string {
  let next = since;
  for (const { updatedAt } of listed) {
    const isAhead = Date.parse(updatedAt) > nowMs + SKEW_MS;
    const at = isAhead ? timestamp(nowMs - CLOCKS_MS) : updatedAt;
    if (Date.parse(at) > Date.parse(next)) next = at;
  }
  return next;
}
