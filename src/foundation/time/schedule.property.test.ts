import { Cron } from 'croner';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { parseSchedule } from './schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = (text: string) => Date.parse(text);

const field = (min: number, max: number) => {
  const value = fc.integer({ min, max });
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant('*') },
    { weight: 2, arbitrary: value.map(String) },
    fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    fc.integer({ min: 1, max: max - min }).map((step) => `*/${step}`),
    fc.array(value, { minLength: 2, maxLength: 4 }).map((all) => all.join(',')),
  );
};
const weekday = fc.integer({ min: 0, max: 6 });
const cron = fc
  .tuple(
    field(0, 59),
    field(0, 23),
    fc.oneof(
      field(1, 31),
      fc.constantFrom('L', 'LW', '29'),
      fc.integer({ min: 1, max: 31 }).map((day) => `${day}W`),
    ),
    fc.oneof(field(1, 12), fc.constantFrom('2', 'feb')),
    fc.oneof(
      field(0, 7),
      fc.constantFrom('*', 'mon-fri'),
      fc.tuple(weekday, fc.integer({ min: 1, max: 5 })).map(([day, nth]) => `${day}#${nth}`),
      weekday.map((day) => `${day}L`),
    ),
  )
  .map((fields) => fields.join(' '));

test('the next start is the one that the library finds, or an earlier one that it misses', () => {
  const time = fc.integer({ min: at('1970-01-01T00:00:00Z'), max: at('2110-01-01T00:00:00Z') });
  fc.assert(
    fc.property(cron, time, (text, now) => {
      const library = new Cron(text, { timezone: 'UTC', paused: true });
      const expected = library.nextRun(new Date(now))?.getTime();
      const found = parseSchedule(text, 'UTC').next(now);
      if (found === expected) return;
      // The library skips the first days of March for some schedules with days that February does not have.
      expect(found).toBeLessThan(expected ?? Number.POSITIVE_INFINITY);
      expect(found).toBeGreaterThan(now);
      expect(library.match(new Date(found ?? 0))).toBe(true);
    }),
    { numRuns: runs(3000) },
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
        const text = `${minute} ${hour} * * *`;
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
