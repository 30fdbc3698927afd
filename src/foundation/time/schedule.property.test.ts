import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { parseSchedule } from './schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const at = (text: string) => Date.parse(text);

/** A part of a schedule, and what it means without any library. */
interface Part<Matches> {
  readonly text: string;
  readonly matches: Matches;
}

const numbers = (text: string, matches: (value: number) => boolean): Part<(value: number) => boolean> => ({
  text,
  matches,
});
const field = (min: number, max: number) => {
  const value = fc.integer({ min, max });
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(numbers('*', () => true)) },
    { weight: 2, arbitrary: value.map((one) => numbers(String(one), (other) => other === one)) },
    fc
      .tuple(value, value)
      .map((both) => both.toSorted((a, b) => a - b))
      .map(([from = 0, to = 0]) => numbers(`${from}-${to}`, (other) => from <= other && other <= to)),
    fc.integer({ min: 1, max: max - min }).map((step) => numbers(`*/${step}`, (other) => (other - min) % step === 0)),
    fc
      .array(value, { minLength: 2, maxLength: 4 })
      .map((all) => numbers(all.join(','), (other) => all.includes(other))),
  );
};

interface Day {
  readonly day: number;
  /** 0 is Sunday. */
  readonly weekday: number;
  /** The days of the month from Monday to Friday. */
  readonly workingDays: readonly number[];
  readonly lastDay: number;
}
const days = (text: string, matches: (day: Day) => boolean): Part<(day: Day) => boolean> => ({ text, matches });
const weekday = fc.integer({ min: 0, max: 6 });
const dayOfMonth = fc.oneof(
  field(1, 31).map(({ text, matches }) => days(text, ({ day }) => matches(day))),
  fc.constantFrom(
    days('L', ({ day, lastDay }) => day === lastDay),
    days('LW', ({ day, workingDays }) => day === workingDays.at(-1)),
    days('29', ({ day }) => day === 29),
  ),
  fc.integer({ min: 1, max: 31 }).map((near) =>
    days(`${near}W`, ({ day, workingDays, lastDay }) => {
      const byDistance = workingDays.toSorted((a, b) => Math.abs(a - near) - Math.abs(b - near));
      return near <= lastDay && day === byDistance[0];
    }),
  ),
);
const dayOfWeek = fc.oneof(
  field(0, 6).map(({ text, matches }) => days(text, (day) => matches(day.weekday))),
  fc.constantFrom(
    days('7', (day) => day.weekday === 0),
    days('mon-fri', (day) => day.weekday >= 1 && day.weekday <= 5),
  ),
  fc
    .tuple(weekday, fc.integer({ min: 1, max: 5 }))
    .map(([one, nth]) => days(`${one}#${nth}`, (day) => day.weekday === one && Math.ceil(day.day / 7) === nth)),
  weekday.map((one) => days(`${one}L`, (day) => day.weekday === one && day.day + 7 > day.lastDay)),
);
const month = fc.oneof(field(1, 12), fc.constant(numbers('feb', (value) => value === 2)));

function dayOf(time: number): Day {
  const date = new Date(time);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  const weekdayOf = (day: number) => (date.getUTCDay() + day - date.getUTCDate() + 35) % 7;
  const all = Array.from({ length: lastDay }, (_, index) => index + 1);
  return {
    ...{ day: date.getUTCDate(), weekday: date.getUTCDay(), lastDay },
    workingDays: all.filter((day) => weekdayOf(day) !== 0 && weekdayOf(day) !== 6),
  };
}

test('the next start is the one that a search day by day finds', () => {
  const time = fc.integer({ min: at('1970-01-01T00:00:00Z'), max: at('2110-01-01T00:00:00Z') });
  const schedule = fc.tuple(field(0, 59), field(0, 23), dayOfMonth, month, dayOfWeek);
  fc.assert(
    fc.property(schedule, time, ([minute, hour, ofMonth, inMonth, ofWeek], now) => {
      const matches = (midnight: number) => {
        if (!inMonth.matches(new Date(midnight).getUTCMonth() + 1)) return false;
        const day = dayOf(midnight);
        // If both are given, one of them has to match.
        if (ofMonth.text === '*' || ofWeek.text === '*') return ofMonth.matches(day) && ofWeek.matches(day);
        return ofMonth.matches(day) || ofWeek.matches(day);
      };
      const minutes = Array.from({ length: DAY / MINUTE }, (_, index) => index).filter(
        (of) => hour.matches(Math.floor(of / 60)) && minute.matches(of % 60),
      );
      let expected: number | undefined;
      const today = Math.floor(now / DAY) * DAY;
      // No schedule has its starts further apart.
      const end = today + 41 * 366 * DAY;
      for (let midnight = today; expected === undefined && midnight < end; midnight += DAY) {
        if (!matches(midnight)) continue;
        expected = minutes.map((of) => midnight + of * MINUTE).find((start) => start > now);
      }
      const text = [minute, hour, ofMonth, inMonth, ofWeek].map((part) => part.text).join(' ');
      expect(parseSchedule(text, 'UTC').next(now), `${text} after ${new Date(now).toISOString()}`).toBe(expected);
    }),
    { numRuns: runs(1000) },
  );
});

test('around changes of the clocks, each start happens once, in the first run of its hour or after the skipped hour', () => {
  const changes = [
    ['Europe/Berlin', '2026-03-29T01:00:00Z', 1],
    ['Europe/Berlin', '2026-10-25T01:00:00Z', -1],
    ['America/New_York', '2026-03-08T07:00:00Z', 1],
    ['America/New_York', '2026-11-01T06:00:00Z', -1],
    ['Antarctica/Troll', '2026-03-29T01:00:00Z', 2],
    ['Antarctica/Troll', '2026-10-25T01:00:00Z', -2],
    ['Australia/Lord_Howe', '2026-10-03T15:30:00Z', 0.5],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00Z', -0.5],
  ] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...changes),
      field(0, 59),
      field(0, 5),
      fc.integer({ min: -6 * 60, max: 6 * 60 }),
      ([timeZone, change, hours], minute, hour, minutes) => {
        const text = `${minute.text} ${hour.text} * * *`;
        const moment = at(change);
        const now = moment + minutes * MINUTE;
        const before = wallOffset(timeZone, moment - 1);
        const walls = parseSchedule(text, 'UTC');
        const starts: number[] = [];
        for (let wall = walls.next(now + before - 5 * HOUR); wall !== undefined; wall = walls.next(wall)) {
          if (wall > now + before + 40 * HOUR) break;
          const early = wall - before;
          // In the skipped hour, and before the change, what the clocks showed before decides.
          const isEarly =
            early < moment + Math.max(0, hours) * HOUR && wall < moment + before + Math.max(0, hours) * HOUR;
          starts.push(isEarly ? early : wall - before - hours * HOUR);
        }
        const expected = Math.min(...starts.filter((start) => start > now));
        expect(parseSchedule(text, timeZone).next(now), `${text} ${new Date(now).toISOString()}`).toBe(expected);
      },
    ),
    { numRuns: runs(500) },
  );
});

test.each([
  ['Australia/Lord_Howe', '2026-04-04T12:00:00Z', '2026-04-04T14:30:00.000Z'],
  ['Antarctica/Troll', '2026-10-24T12:00:00Z', '2026-10-24T23:30:00.000Z'],
])('the first run decides where clocks change by other than an hour: %s', (timeZone, now, expected) => {
  const start = parseSchedule('30 1 * * *', timeZone).next(at(now));
  expect(new Date(start ?? 0).toISOString()).toBe(expected);
});

/** What the clock shows minus the time. */
function wallOffset(timeZone: string, time: number): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }).formatToParts(time);
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign = '+', hour = 0, minute = 0] = /GMT(?:([+-])(\d+):(\d+))?/.exec(name) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hour) * HOUR + Number(minute) * MINUTE);
}
