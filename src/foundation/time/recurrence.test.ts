import { describe, expect, test } from 'vitest';
import { type Recurrence, recurrenceAt, recurrenceProblem } from './recurrence.ts';

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);
const times = (recurrence: Recurrence, now: string) => {
  const state = recurrenceAt(recurrence, at(now));
  const text = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
  return state.isActive
    ? { isActive: true, since: text(state.since), until: text(state.until) }
    : { isActive: false, since: text(state.since), next: text(state.next) };
};

const office: Recurrence = { cron: '0 9 * * 1-5', durationMs: 8 * HOUR, timeZone: 'Europe/Berlin' };

test('a period is active from its start to its end, which does not belong to it', () => {
  const closed = { isActive: false, since: '2026-03-27T16:00:00.000Z', next: '2026-03-30T07:00:00.000Z' };
  const open = { isActive: true, since: '2026-03-30T07:00:00.000Z', until: '2026-03-30T15:00:00.000Z' };
  expect(times(office, '2026-03-28T12:00:00Z')).toEqual(closed);
  expect(times(office, '2026-03-30T06:59:59Z')).toEqual(closed);
  expect(times(office, '2026-03-30T07:00:00Z')).toEqual(open);
  expect(times(office, '2026-03-30T14:59:59Z')).toEqual(open);
  expect(times(office, '2026-03-30T15:00:00Z')).toEqual({
    ...{ isActive: false, since: '2026-03-30T15:00:00.000Z', next: '2026-03-31T07:00:00.000Z' },
  });
});

test('periods that overlap are one', () => {
  const overlapping = { cron: '0 9,11 * * *', durationMs: 3 * HOUR, timeZone: 'UTC' };
  expect(times(overlapping, '2026-01-05T11:30:00Z')).toEqual({
    ...{ isActive: true, since: '2026-01-05T09:00:00.000Z', until: '2026-01-05T14:00:00.000Z' },
  });
});

describe('when the clocks change', () => {
  const night = { cron: '30 2 * * *', durationMs: 2 * HOUR, timeZone: 'Europe/Berlin' };

  test('a start in the hour that does not exist is after the change', () => {
    expect(times(night, '2026-03-29T00:59:00Z')).toMatchObject({ isActive: false, next: '2026-03-29T01:30:00.000Z' });
    expect(times(night, '2026-03-29T01:30:00Z')).toMatchObject({ until: '2026-03-29T03:30:00.000Z' });
  });

  test('a start in the hour that exists twice happens once, and the duration is elapsed time', () => {
    expect(times(night, '2026-10-25T00:30:00Z')).toEqual({
      ...{ isActive: true, since: '2026-10-25T00:30:00.000Z', until: '2026-10-25T02:30:00.000Z' },
    });
    expect(times(night, '2026-10-25T02:30:00Z')).toEqual({
      ...{ isActive: false, since: '2026-10-25T02:30:00.000Z', next: '2026-10-26T01:30:00.000Z' },
    });
  });

  test('the same time of the day is another time in UTC', () => {
    expect(times(office, '2026-03-27T08:00:00Z')).toMatchObject({ since: '2026-03-27T08:00:00.000Z' });
    expect(times(office, '2026-03-30T07:00:00Z')).toMatchObject({ since: '2026-03-30T07:00:00.000Z' });
  });
});

test.each([
  [{ cron: '0 0 30 2 *' }, 'matches no day of any year'],
  [{ cron: '0 0 31 4,6 *' }, 'matches no day of any year'],
  [{ cron: '0 9 * *' }, 'five fields'],
  [{ cron: '0 0 9 * * *' }, 'five fields'],
  [{ cron: '@daily' }, 'five fields'],
  [{ cron: '0 9 * * ?' }, 'five fields'],
  [{ cron: '99 9 * * *' }, 'out of its range'],
  [{ cron: `0 9 * * ${'1,'.repeat(100)}1` }, 'five fields'],
  [{ cron: '* * * * *' }, 'never ends'],
  [{ cron: '0 0 * * *', durationMs: 24 * HOUR }, 'never ends'],
  [{ durationMs: Number.POSITIVE_INFINITY }, 'at most 8784h'],
  [{ durationMs: Number.NaN }, 'at least 1m'],
  [{ durationMs: 0 }, 'at least 1m'],
  [{ timeZone: 'Europe/Atlantis' }, 'IANA name'],
  [{ timeZone: '+01:00' }, 'IANA name'],
])('%j is refused', (part, problem) => {
  expect(recurrenceProblem({ ...office, ...part })).toContain(problem);
});

test('the last end of a rare period is known for a year', () => {
  const rare = { cron: '0 0 29 2 *', durationMs: 24 * HOUR, timeZone: 'UTC' };
  expect(times(rare, '2025-01-10T00:00:00Z')).toEqual({
    ...{ isActive: false, since: '2024-03-01T00:00:00.000Z', next: '2028-02-29T00:00:00.000Z' },
  });
  expect(times(rare, '2026-01-10T00:00:00Z')).toEqual({
    ...{ isActive: false, since: undefined, next: '2028-02-29T00:00:00.000Z' },
  });
});

test('leap days and long periods are accepted', () => {
  expect(recurrenceProblem(office)).toBeUndefined();
  expect(recurrenceProblem({ cron: '0 0 29 2 *', durationMs: 24 * HOUR, timeZone: 'UTC' })).toBeUndefined();
  expect(recurrenceProblem({ cron: '0 0 20 12 *', durationMs: 336 * HOUR, timeZone: 'UTC' })).toBeUndefined();
});

test('each minute of some hours is accepted, and the period ends with the last one', () => {
  const everyMinute = { cron: '* 9 * * *', durationMs: 60_000, timeZone: 'Europe/Berlin' };
  expect(recurrenceProblem(everyMinute)).toBeUndefined();
  const open = { isActive: true, until: '2026-01-05T09:00:00.000Z' };
  // Also where the end is known from a time before, and from one after.
  for (const time of ['08:30:30', '08:00:00', '08:45:00', '08:59:59', '08:20:00'])
    expect(times(everyMinute, `2026-01-05T${time}Z`), time).toMatchObject(open);
  expect(times(everyMinute, '2026-01-05T08:45:10Z')).toMatchObject({ since: '2026-01-05T08:45:00.000Z' });
  expect(times(everyMinute, '2026-01-05T09:00:00Z')).toMatchObject({ isActive: false });
  expect(times(everyMinute, '2026-01-06T08:30:00Z')).toMatchObject({ until: '2026-01-06T09:00:00.000Z' });
  expect(times(everyMinute, '2026-01-04T08:30:00Z')).toMatchObject({ until: '2026-01-04T09:00:00.000Z' });
  const longer = { ...everyMinute, durationMs: 600_000 };
  expect(times(longer, '2026-01-05T08:30:00Z')).toMatchObject({ until: '2026-01-05T09:09:00.000Z' });
  expect(recurrenceProblem({ ...everyMinute, cron: '0-30 * * * *' })).toBeUndefined();
});

test('a recurrence whose end is too many starts away is refused, wherever the reference time is in it', () => {
  for (const timeZone of ['UTC', 'Asia/Tokyo', 'America/New_York'])
    expect(recurrenceProblem({ cron: '* 5-20 * * *', durationMs: 60_000, timeZone }), timeZone).toContain(
      'too far away',
    );
});

test('the state is that of a search step by step', () => {
  const recurrence = { cron: '0 1,3 * * *', durationMs: 90 * 60_000, timeZone: 'Europe/Berlin' };
  // Around both changes of the clocks.
  for (const day of ['2026-03-28T20:00:00Z', '2026-10-24T20:00:00Z']) {
    const starts = new Set<number>();
    for (let time = at(day) - 4 * HOUR; time < at(day) + 12 * HOUR; time += 15 * 60_000) {
      const state = recurrenceAt({ ...recurrence, durationMs: 60_000 }, time);
      if (state.isActive) starts.add(time);
    }
    for (let time = at(day); time < at(day) + 12 * HOUR; time += 5 * 60_000) {
      const isActive = [...starts].some((start) => start <= time && time < start + recurrence.durationMs);
      expect(recurrenceAt(recurrence, time).isActive, new Date(time).toISOString()).toBe(isActive);
    }
  }
});

test('the last of many starts is found', () => {
  const busy = { cron: '1-59/2 * * * *', durationMs: 60_000, timeZone: 'Europe/Berlin' };
  expect(times(busy, '2026-11-24T15:00:30Z')).toEqual({
    ...{ isActive: false, since: '2026-11-24T15:00:00.000Z', next: '2026-11-24T15:01:00.000Z' },
  });
  const bursts = { ...busy, cron: '1-59/2 3-20 1 * *' };
  expect(times(bursts, '2026-11-24T15:00:30Z')).toEqual({
    ...{ isActive: false, since: '2026-11-01T20:00:00.000Z', next: '2026-12-01T02:01:00.000Z' },
  });
});

test('a period is not open again in the second run of an hour that exists twice', () => {
  const short = { cron: '30 2 * * *', durationMs: 10 * 60_000, timeZone: 'Europe/Berlin' };
  const closed = { isActive: false, since: '2026-10-25T00:40:00.000Z', next: '2026-10-26T01:30:00.000Z' };
  expect(times(short, '2026-10-25T00:35:00Z').isActive).toBe(true);
  for (const time of ['00:45', '01:09', '01:10', '01:30', '01:35', '01:59', '02:05', '02:15'])
    expect(times(short, `2026-10-25T${time}:00Z`), time).toEqual(closed);
});

describe('the state that is kept', () => {
  const recurrences: Recurrence[] = [
    office,
    { cron: '30 2 * * *', durationMs: 10 * 60_000, timeZone: 'Europe/Berlin' },
    { cron: '*/15 * * * *', durationMs: 15 * 60_000 - 1, timeZone: 'Europe/Berlin' },
    { cron: '* 9 * * *', durationMs: 60_000, timeZone: 'Europe/Berlin' },
    { cron: '0 0 29 2 *', durationMs: 24 * HOUR, timeZone: 'UTC' },
  ];
  const days = [
    ...['2026-03-28T00:00:00Z', '2026-10-24T00:00:00Z', '2024-02-28T12:00:00Z', '2024-02-29T12:00:00Z'],
    // The end of a period before leaves the year that is searched.
    ...['2025-03-01T12:00:00Z', '2025-03-02T12:00:00Z'],
  ];

  test.each(recurrences)('is that of a new search, in whichever direction the clock moves: $cron', (recurrence) => {
    const steps = Array.from({ length: 48 * 4 }, (_, step) => step * 15 * 60_000);
    const all = days.flatMap((day) => steps.map((step) => at(day) + step)).sort((a, b) => a - b);
    const state = (time: number) => recurrenceAt(recurrence, time);
    // A clock that moves backwards finds nothing kept.
    const searched = all.toReversed().map(state).reverse();
    expect(all.map(state)).toEqual(searched);
    for (const [first, second] of [
      [0, 150],
      [150, 3],
      [3, 151],
      [149, 2],
    ] as const) {
      expect(state(all[first] ?? 0)).toEqual(searched[first]);
      expect(state(all[second] ?? 0)).toEqual(searched[second]);
    }
  });
});

test('a short period in the hour that does not exist is active after the change, also beside a later one', () => {
  const skipped = { cron: '30 2 * * *', durationMs: 60_000, timeZone: 'Europe/Berlin' };
  const open = { isActive: true, since: '2026-03-29T01:30:00.000Z' };
  expect(times(skipped, '2026-03-29T01:30:30Z')).toMatchObject(open);
  expect(times({ ...skipped, cron: '30 2-3 * * *' }, '2026-03-29T01:30:30Z')).toMatchObject(open);
  expect(times({ ...skipped, cron: '10,50 2-3 * * *' }, '2026-03-29T00:30:00Z')).toMatchObject({
    next: '2026-03-29T01:10:00.000Z',
  });
});

test('a fifth Sunday of February is found decades away', () => {
  const rare = { cron: '0 0 * 2 0#5', durationMs: HOUR, timeZone: 'UTC' };
  expect(recurrenceProblem(rare)).toBeUndefined();
  expect(times(rare, '2072-03-01T00:00:00Z')).toMatchObject({ next: '2088-02-29T00:00:00.000Z' });
  expect(times(rare, '2088-03-01T00:00:00Z')).toMatchObject({ next: '2128-02-29T00:00:00.000Z' });
});
