import { expect, test } from 'vitest';
import { ManualClock, settle } from './manual-clock.ts';

test('timers run in the order they are due, each at its own time', () => {
  const clock = new ManualClock(0);
  const seen: string[] = [];
  clock.schedule(20, () => seen.push(`b@${clock.now()}`));
  clock.schedule(10, () => {
    seen.push(`a@${clock.now()}`);
    clock.schedule(5, () => seen.push(`c@${clock.now()}`));
  });
  const cancel = clock.schedule(12, () => seen.push('never'));
  cancel();
  expect(clock.nextDelay).toBe(10);
  clock.advance(19);
  expect(seen).toEqual(['a@10', 'c@15']);
  clock.advance(1);
  expect(seen).toEqual(['a@10', 'c@15', 'b@20']);
  expect(clock.pending).toBe(0);
});

test('promises that a timer resolves run before the next timer', async () => {
  const clock = new ManualClock(0);
  const seen: number[] = [];
  const sleep = (delay: number) => new Promise<void>((resolve) => clock.schedule(delay, resolve));
  void (async () => {
    for (let round = 0; round < 3; round += 1) {
      await sleep(10);
      seen.push(clock.now());
    }
  })();
  await clock.advanceAsync(35);
  await settle();
  expect(seen).toEqual([10, 20, 30]);
  expect(clock.now()).toBe(35);
});

test('setting the wall clock makes no time pass', () => {
  const clock = new ManualClock(1_000_000);
  const seen: string[] = [];
  clock.schedule(20, () => seen.push(`${clock.now()} ${clock.monotonic()}`));
  clock.setBy(500);
  clock.advance(10);
  expect([clock.now(), clock.monotonic(), clock.nextDelay, seen]).toEqual([1_000_510, 10, 10, []]);
  clock.setBy(-600);
  clock.advance(10);
  expect(seen).toEqual(['999920 20']);
});
