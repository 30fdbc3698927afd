import { LruCache } from '../lru-cache.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

/** A period that starts by a schedule in a time zone and lasts for a duration, such as 9:00 to 17:00 on working days. */
export interface Recurrence {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron: string;
  /** Elapsed time, which a change of the clocks neither lengthens nor shortens. */
  readonly durationMs: number;
  /** IANA name of a time zone. */
  readonly timeZone: string;
}

/** The state of a recurrence at a time. All times are milliseconds since the epoch. */
export type RecurrenceState =
  /** `until` is absent if the periods follow each other without a gap for longer than is searched. */
  | { readonly isActive: true; readonly since: number; readonly until?: number }
  /** `since` is the end of the last period, absent if there was none in the last year; `next` is absent if it does not start again. */
  | { readonly isActive: false; readonly since?: number; readonly next?: number };

const MAX_CRON_CHARACTERS = 100;
export const MAX_RECURRENCE_DURATION_MS = 366 * 24 * 3_600_000;
/** Starts that are searched for the end of periods that follow each other without a gap. */
const MAX_CHAINED_STARTS = 100;
/** Below the distance of two starts. */
const MIN_DISTANCE_MS = 30_000;
const FIVE_FIELDS = /^[0-9A-Za-z*,/#-]+(?: [0-9A-Za-z*,/#-]+){4}$/;
/** A Thursday, long before any decision; a schedule of five fields that has no start after it has none at all. */
const REFERENCE_MS = 0;

/** Several times the periods of a policy folder, so that the policies of one namespace do not evict those of another at each evaluation. */
const MAX_CACHED = 10_000;
const problems = new LruCache<string, string | false>({ maxEntries: MAX_CACHED });
/** The last state that was computed for a recurrence. It is the same at each time from `from` to before `to`. */
const states = new LruCache<string, { readonly state: RecurrenceState; readonly from: number; readonly to: number }>({
  maxEntries: MAX_CACHED,
});

/**
 * Returns why a recurrence cannot be used, as the end of a sentence; undefined if it can. One that never starts, or that starts again
 * before it ends each time, is a mistake: it permits or forbids nothing, or all. So is one whose end is not found within bounded work.
 */
export function recurrenceProblem(recurrence: Recurrence): string | undefined {
  const key = keyOf(recurrence);
  const known = problems.get(key);
  if (known !== undefined) return known === false ? undefined : known;
  const found = findProblem(recurrence);
  problems.set(key, found ?? false);
  return found;
}

function findProblem({ cron, durationMs, timeZone }: Recurrence): string | undefined {
  if (cron.length > MAX_CRON_CHARACTERS || !FIVE_FIELDS.test(cron))
    return 'cron must have five fields separated by one space: minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5"';
  if (!isTimeZone(timeZone))
    return `timeZone ${JSON.stringify(timeZone)} is not the IANA name of a time zone, such as Europe/Berlin`;
  if (!(durationMs >= 60_000 && durationMs <= MAX_RECURRENCE_DURATION_MS))
    return 'duration must be at least 1m and at most 8784h (366 days)';
  let first: number | undefined;
  let after: Schedule['next'];
  try {
    after = parseSchedule(cron, timeZone).next;
    first = after(REFERENCE_MS);
  } catch {
    return `cron ${JSON.stringify(cron)} is not a schedule: a field has a value that is out of its range`;
  }
  if (first === undefined) return `cron ${JSON.stringify(cron)} matches no day of any year, so that it never starts`;
  // The reference may be within periods that follow each other; the next ones are complete.
  const end = chainEnd(after, first, durationMs);
  const second = end === undefined ? undefined : after(end);
  if (end !== undefined && (second === undefined || chainEnd(after, second, durationMs) !== undefined))
    return undefined;
  return `it starts again before it ends ${MAX_CHAINED_STARTS} times in a row, so that it never ends or its end is too far away; shorten duration, or start it less often for longer`;
}

/**
 * Evaluates a recurrence without a `recurrenceProblem` at a time. The search costs up to some milliseconds; the state is kept, so that
 * evaluations until its next change cost nothing, and one at a time before it searches again.
 */
export function recurrenceAt(recurrence: Recurrence, now: number): RecurrenceState {
  const key = keyOf(recurrence);
  const known = states.get(key);
  if (known !== undefined && known.from <= now && now < known.to) return known.state;
  const { cron, durationMs, timeZone } = recurrence;
  const after = parseSchedule(cron, timeZone).next;
  const first = after(now - durationMs);
  if (first === undefined || first > now) {
    const before = lastStart(after, now);
    const state = {
      isActive: false,
      ...(before === undefined ? {} : { since: before + durationMs }),
      ...(first === undefined ? {} : { next: first }),
    } as const;
    const forgotten = before === undefined ? Number.POSITIVE_INFINITY : before + MAX_LOOKBACK_MS;
    states.set(key, { state, from: now, to: Math.min(first ?? Number.POSITIVE_INFINITY, forgotten) });
    return state;
  }
  // The end of periods that follow each other is the same for all of them.
  const isSameEnd = known?.state.isActive && known.from <= now && now < (known.state.until ?? Number.NEGATIVE_INFINITY);
  const until = isSameEnd ? known.state.until : chainEnd(after, first, durationMs);
  const state = { isActive: true, since: first, ...(until === undefined ? {} : { until }) } as const;
  states.set(key, { state, from: now, to: first + durationMs });
  return state;
}

/** When the periods end that follow each other without a gap from a start on; undefined if they are too many. */
function chainEnd(after: Schedule['next'], first: number, durationMs: number): number | undefined {
  let last = first;
  for (let count = 0; count < MAX_CHAINED_STARTS; count += 1) {
    const next = after(last);
    if (next === undefined || next > last + durationMs) return last + durationMs;
    last = next;
  }
  return undefined;
}

function keyOf({ cron, durationMs, timeZone }: Recurrence): string {
  return `${cron} ${durationMs} ${timeZone}`;
}

const MAX_LOOKBACK_MS = 367 * 24 * 3_600_000;
/** The distances in which the last start is searched. */
const LOOKBACKS_MS = [...[1, 8, 32].map((days) => days * 24 * 3_600_000), MAX_LOOKBACK_MS];

/** Bisects, since a schedule may start every other minute: the starts of a day are too many to try each of them. */
function lastStart(after: Schedule['next'], now: number): number | undefined {
  for (const lookback of LOOKBACKS_MS) {
    let found = after(now - lookback);
    if (found === undefined || found > now) continue;
    let end = now;
    while (end - found >= MIN_DISTANCE_MS) {
      const middle = Math.floor((found + end) / 2);
      const start = after(middle);
      // Without progress the search goes on before the middle, so that it always ends.
      if (start !== undefined && start <= now && start > found) found = start;
      else end = middle;
    }
    return found;
  }
  return undefined;
}

function isTimeZone(name: string): boolean {
  // Offsets such as +01:00 name no rules for summer time.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
