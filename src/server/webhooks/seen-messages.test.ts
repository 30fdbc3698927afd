import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { SeenMessages } from './seen-messages.ts';

test('messages are remembered for a time, and at most so many', () => {
  const clock = new ManualClock();
  const seen = new SeenMessages(clock, 1000, 3);
  expect([seen.add('a'), seen.add('a'), seen.add('b')]).toEqual([true, false, true]);
  clock.advance(999);
  expect(seen.add('a')).toBe(false);
  clock.advance(1);
  expect([seen.add('a'), seen.size]).toEqual([true, 1]);
  for (const id of ['c', 'd', 'e', 'f']) seen.add(id);
  expect(seen.size).toBe(3);
  expect([seen.add('f'), seen.add('c')]).toEqual([false, true]);
});

test('a clock that is set back removes entries with later times', () => {
  const now = { value: 1_000_000 };
  const seen = new SeenMessages({ now: () => now.value, schedule: () => () => undefined }, 1000, 10);
  seen.add('a');
  now.value -= 500_000;
  expect([seen.add('a'), seen.add('a')]).toEqual([true, false]);
});
