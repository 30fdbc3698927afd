import { expect, test } from 'vitest';
import { parseDuration } from './duration.ts';

test.each([
  ['0', 0],
  ['30s', 30_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['500ms', 500],
  ['2us', 0.002],
  ['1m1s1ms', 61_001],
  ['', undefined],
  ['30', undefined],
  ['-5m', undefined],
  ['1 h', undefined],
  ['1d', undefined],
  ['1h ', undefined],
  ['.5h', undefined],
  ['1..5h', undefined],
  ['99999999999h', undefined],
  [`${'1h'.repeat(40)}`, undefined],
])('%j is %s ms', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});
