import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { REMOTE_INTERVALS, SyncPace } from './sync-pace.ts';

const middle = () => 0.5;

test('polls are frequent while changes are found, and back off while none are', () => {
  const pace = new SyncPace(REMOTE_INTERVALS, middle);
  expect(pace.first()).toBe(30_000);
  expect([false, false, false, true, false, false].map((found) => pace.next(found, true))).toEqual([
    45_000, 60_000, 60_000, 5000, 7500, 11_250,
  ]);
});

test('polling relies on a webhook until a poll finds a change that it did not report', () => {
  const pace = new SyncPace(REMOTE_INTERVALS, middle);
  pace.noteWebhook();
  const quiet = Array.from({ length: 8 }, () => pace.next(true, false));
  expect(quiet.at(-1)).toBe(300_000);
  expect(pace.next(false, true)).toBe(300_000);
  expect(pace.next(true, true)).toBe(5000);
  for (let poll = 0; poll < 20; poll += 1) pace.next(false, true);
  expect(pace.next(false, true)).toBe(60_000);
});

test('property: the interval to the next poll stays within its bounds', () => {
  const step = fc.record({
    found: fc.boolean(),
    isPoll: fc.boolean(),
    hook: fc.boolean(),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
      let random = 0;
      const pace = new SyncPace(REMOTE_INTERVALS, () => random);
      expect(pace.first()).toBeGreaterThanOrEqual(5000);
      for (const given of steps) {
        random = given.random;
        if (given.hook) pace.noteWebhook();
        const next = pace.next(given.found, given.isPoll);
        expect(next).toBeGreaterThanOrEqual(3750);
        expect(next).toBeLessThanOrEqual(375_000);
      }
    }),
    { numRuns: runs(100) },
  );
});

test('200 repositories that are opened together are not polled at the same times', () => {
  // A fixed sequence of numbers that look random.
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const perSecond = new Map<number, number>();
  for (let repository = 0; repository < 200; repository += 1) {
    const pace = new SyncPace(REMOTE_INTERVALS, random);
    for (let at = pace.first(); at < 600_000; at += pace.next(false, true)) {
      const second = Math.floor(at / 1000);
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
    }
  }
  // No poll is due in the first five seconds; those drawn for that time are all due just after it.
  expect(Math.max(...[...perSecond].filter(([second]) => second > 5).map(([, count]) => count))).toBeLessThan(20);
});
