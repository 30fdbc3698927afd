import { CronPattern } from 'croner';
import { LruCache } from '../lru-cache.ts';

/**
 * A schedule of five fields in a time zone. The library parses it; the search is our own, since that of the library makes a formatter for
 * each step, looks for a rare day until the year 3000, and misses starts when the clocks change. Other results are the same
 * (`schedule.property.test.ts`).
 */
export interface Schedule {
  /**
   * The first start after a time, in milliseconds since the epoch; undefined if there is none. A start at a time of day that the clock shows
   * twice happens once, at the first; one that the clock skips is after the change. Takes some microseconds, and less than a millisecond
   * in the worst case.
   */
  readonly next: (time: number) => number | undefined;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MINUTES = 24 * 60;
const DAY_MS = DAY_MINUTES * MINUTE_MS;
/** No change of a clock in use is longer. */
const MAX_CHANGE_MS = 3 * HOUR_MS;
/** A 29 February on a given day of the week can be 40 years away, since 2100 is no leap year. No schedule is rarer. */
const MAX_MONTHS = 41 * 12;
/** Bit of the library for the last such day of a month; the bits below are those of the first to the fifth. */
const LAST_OF_MONTH = 32;

/** Throws if a field is not valid, or the time zone is not known. */
export function parseSchedule(cron: string, timeZone: string): Schedule {
  const pattern = new CronPattern(cron);
  const nearest = [...pattern.nearestWeekdays.keys()].filter((at) => pattern.nearestWeekdays[at]).map((at) => at + 1);
  const days = { pattern, nearest };
  const wallClock = wallClockOf(timeZone);
  return {
    next: (time) => {
      const shown = wallClock(time);
      // Starts that the clock has just skipped may still be due.
      const skipped = Math.max(0, shown - wallClock(time - MAX_CHANGE_MS) - MAX_CHANGE_MS);
      let first: number | undefined;
      let wall = nextWall(days, shown - skipped);
      while (wall !== undefined) {
        const start = instantOf(wall, wallClock);
        if (start > time && start < (first ?? Number.POSITIVE_INFINITY)) first = start;
        // A start after the skipped hour can be before one in it.
        if (first !== undefined && wall >= wallClock(first)) break;
        wall = nextWall(days, wall);
      }
      return first;
    },
  };
}

interface Days {
  readonly pattern: CronPattern;
  /** Days of the month that stand for the working day next to them. */
  readonly nearest: readonly number[];
}

/** The first minute after a time that matches; both as the clock on the wall shows them. */
function nextWall(days: Days, after: number): number | undefined {
  const from = Math.floor(after / MINUTE_MS) + 1;
  const today = Math.floor(from / DAY_MINUTES);
  const day = nextDay(days, today);
  if (day === undefined) return undefined;
  const minute = minuteOfDay(days.pattern, day === today ? from - today * DAY_MINUTES : 0);
  if (minute !== undefined) return (day * DAY_MINUTES + minute) * MINUTE_MS;
  // Each day has the same minutes, and a schedule has at least one.
  return nextWall(days, (today + 1) * DAY_MS - 1);
}

function minuteOfDay({ hour, minute }: CronPattern, from: number): number | undefined {
  for (let at = from; at < DAY_MINUTES; at += 1) if (hour[Math.floor(at / 60)] && minute[at % 60]) return at;
  return undefined;
}

/** The first day that matches, at or after another one; days since the epoch. */
function nextDay(days: Days, from: number): number | undefined {
  const start = new Date(from * DAY_MS);
  let day = start.getUTCDate();
  for (let months = 0; months < MAX_MONTHS; months += 1) {
    const first = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + months, 1));
    if (days.pattern.month[first.getUTCMonth()]) {
      const month = { firstWeekday: first.getUTCDay(), length: lengthOf(first) };
      for (; day <= month.length; day += 1) if (matchesDay(days, day, month)) return first.getTime() / DAY_MS + day - 1;
    }
    day = 1;
  }
  return undefined;
}

interface Month {
  /** 0 is Sunday. */
  readonly firstWeekday: number;
  /** Days. */
  readonly length: number;
}

function lengthOf(first: Date): number {
  return new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
}

function matchesDay({ pattern, nearest }: Days, day: number, month: Month): boolean {
  const isDay =
    Boolean(pattern.day[day - 1]) ||
    (pattern.lastDayOfMonth && day === month.length) ||
    (pattern.lastWeekday && day === lastWorkingDay(month)) ||
    nearest.some((one) => day === nearestWorkingDay(one, month));
  if (pattern.starDOW) return isDay;
  const which = pattern.dayOfWeek[weekdayOf(day, month)] ?? 0;
  const nth = 1 << Math.floor((day - 1) / 7);
  const isWeekday = (which & nth) !== 0 || ((which & LAST_OF_MONTH) !== 0 && day + 7 > month.length);
  // As with cron: if both fields are given, one of them has to match.
  return pattern.starDOM ? isDay && isWeekday : isDay || isWeekday;
}

function weekdayOf(day: number, { firstWeekday }: Month): number {
  return (firstWeekday + day - 1) % 7;
}

function lastWorkingDay(month: Month): number {
  const weekday = weekdayOf(month.length, month);
  return month.length - (weekday === 0 ? 2 : weekday === 6 ? 1 : 0);
}

/** The working day next to a day within the same month; undefined if the month does not have that day. */
function nearestWorkingDay(day: number, month: Month): number | undefined {
  if (day > month.length) return undefined;
  const weekday = weekdayOf(day, month);
  if (weekday === 0) return day === month.length ? day - 2 : day + 1;
  if (weekday === 6) return day === 1 ? day + 2 : day - 1;
  return day;
}

/** What the clock on the wall shows at a time, as if it were UTC: milliseconds since the epoch. */
type WallClock = (time: number) => number;

/** As many as there are time zones; a formatter and its offsets need about 100 KiB. */
const wallClocks = new LruCache<string, WallClock>({ maxEntries: 500 });

function wallClockOf(timeZone: string): WallClock {
  const known = wallClocks.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  /** Milliseconds to add to a time in whole seconds. */
  const offsetAt = (time: number): number => {
    const numbers = format.format(time).match(/\d+/g) ?? [];
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = numbers.map(Number);
    return Date.UTC(year, month - 1, day, hour, minute, second) - time;
  };
  // The formatter costs more than all the rest. No zone changes its clocks and changes them back on one day.
  const offsets = new LruCache<number, number>({ maxEntries: 400 });
  const offsetAtMidnight = (day: number): number => {
    const before = offsets.get(day);
    if (before !== undefined) return before;
    const offset = offsetAt(day * DAY_MS);
    offsets.set(day, offset);
    return offset;
  };
  const wallClock = (time: number) => {
    const day = Math.floor(time / DAY_MS);
    const offset = offsetAtMidnight(day);
    return time + (offset === offsetAtMidnight(day + 1) ? offset : offsetAt(Math.floor(time / 1000) * 1000));
  };
  wallClocks.set(timeZone, wallClock);
  return wallClock;
}

/**
 * The time at which the clock shows a value: the first one of two, and after the change if the clock skips the value. No offset is as long as a
 * day, so that a day before and after the value are on both sides of any change that concerns it.
 */
function instantOf(wall: number, wallClock: WallClock): number {
  const withOffsetAt = (time: number) => wall - (wallClock(time) - time);
  const before = withOffsetAt(wall - DAY_MS);
  if (wallClock(before) === wall) return before;
  const after = withOffsetAt(wall + DAY_MS);
  return wallClock(after) === wall ? after : before;
}
