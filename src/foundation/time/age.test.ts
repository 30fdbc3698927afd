import { expect, test } from 'vitest';
import { age, shortDuration } from './age.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

test.each([
  [-5_000, '0s'],
  [0, '0s'],
  [119_999, '119s'],
  [2 * MINUTE, '2m'],
  [2 * MINUTE + 5_000, '2m5s'],
  [10 * MINUTE - 1, '9m59s'],
  [10 * MINUTE + 59_000, '10m'],
  [3 * HOUR - 1, '179m'],
  [3 * HOUR, '3h'],
  [7 * HOUR + 59 * MINUTE, '7h59m'],
  [8 * HOUR + 59 * MINUTE, '8h'],
  [48 * HOUR - 1, '47h'],
  [3 * DAY + 4 * HOUR, '3d4h'],
  [8 * DAY + 5 * HOUR, '8d'],
  [2 * YEAR - 1, '729d'],
  [2 * YEAR + 30 * DAY, '2y30d'],
  [8 * YEAR, '8y'],
  [9 * YEAR + 30 * DAY, '9y'],
])('%i ms is %s', (milliseconds, text) => {
  expect(shortDuration(milliseconds)).toBe(text);
});

test('the age of what has no time is unknown', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');
  expect(age('2026-01-01T00:00:00Z', now)).toBe('24h');
  expect(age(undefined, now)).toBe('<unknown>');
  expect(age('yesterday', now)).toBe('<unknown>');
});
