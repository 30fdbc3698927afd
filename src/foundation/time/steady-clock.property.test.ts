import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { ManualClock } from './manual-clock.ts';
import { ACCEPTED_AFTER_MS, MAX_LAG_MS, SteadyClock } from './steady-clock.ts';

const DAY = 86_400_000;
const passing = fc.integer({ min: 0, max: 60_000 });

test('it is never ahead of the wall clock, and gains on the running time by what a slewed clock may, until a jump has lasted', () => {
  const steps = fc.array(fc.record({ setBy: fc.integer({ min: -DAY, max: DAY }), passing }), { maxLength: 9 });
  fc.assert(
    fc.property(steps, (all) => {
      const clock = new ManualClock();
      const steady = new SteadyClock(clock);
      // In total less than what a jump has to last.
      let limit = steady.now();
      for (const { setBy, passing: milliseconds } of all) {
        clock.setBy(setBy);
        clock.advance(milliseconds);
        limit += milliseconds * 1.01;
        const now = steady.now();
        expect(now).toBeLessThanOrEqual(clock.now());
        expect(now).toBeLessThanOrEqual(limit);
        limit = Math.min(limit, now + 1);
      }
    }),
    { numRuns: runs(200) },
  );
});

test('a jump ahead and back changes nothing, and one that lasts is followed', () => {
  fc.assert(
    fc.property(fc.integer({ min: MAX_LAG_MS * 2, max: DAY }), passing, (jump, milliseconds) => {
      const clock = new ManualClock();
      const steady = new SteadyClock(clock);
      clock.setBy(jump);
      clock.advance(milliseconds);
      expect(steady.isAhead).toBe(true);
      clock.setBy(-jump);
      expect([steady.now(), steady.isAhead]).toEqual([clock.now(), false]);
      clock.setBy(jump);
      steady.now();
      clock.advance(ACCEPTED_AFTER_MS);
      expect([steady.now(), steady.isAhead]).toEqual([clock.now(), false]);
    }),
    { numRuns: runs(100) },
  );
});

test('it follows a wall clock that is slewed, and one that is set back, at once', () => {
  const clock = new ManualClock();
  const steady = new SteadyClock(clock);
  for (let turn = 0; turn < 100; turn += 1) {
    clock.advance(10_000);
    clock.setBy(5);
    expect(steady.now()).toBe(clock.now());
  }
  clock.setBy(-DAY);
  expect(steady.now()).toBe(clock.now());
});
