import { expect, test } from 'vitest';
import { ManualClock, settle } from '../time/manual-clock.ts';
import { Limiter } from './limiter.ts';

test('so many run at a time, in order, and one that takes too long does not count', async () => {
  const clock = new ManualClock();
  const limiter = new Limiter({ maxRunning: 2, slowAfterMs: 1000, clock });
  const begun: number[] = [];
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
  const runs = ends.map(({ promise }, number) =>
    limiter.run(async () => {
      begun.push(number);
      await promise;
      return number;
    }),
  );
  await settle();
  expect(begun).toEqual([0, 1]);
  ends[1]?.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  await clock.advanceAsync(1000);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  // It counts as slow, so that another one runs in its place already.
  ends[0]?.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  ends[3]?.reject(new Error('failed'));
  await expect(runs[3]).rejects.toThrow('failed');
  await settle();
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  for (const { resolve } of ends) resolve();
  expect(await Promise.all(runs.filter((_, number) => number !== 3))).toEqual([0, 1, 2, 4, 5]);
  expect(clock.pending).toBe(0);
});
