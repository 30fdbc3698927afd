import { expect, test } from 'vitest';
import { settle } from '../time/manual-clock.ts';
import { mapLimited } from './map-limited.ts';

test('keeps the order and the limit', async () => {
  const jobs = [5, 1, 4, 2, 3].map((item) => ({ item, ...Promise.withResolvers<void>() }));
  let running = 0;
  let most = 0;
  const results = mapLimited(jobs, 2, async ({ item, promise }) => {
    running += 1;
    most = Math.max(most, running);
    await promise;
    running -= 1;
    return item * 10;
  });
  // The last end first.
  for (const { resolve } of jobs.toReversed()) resolve();
  expect(await results).toEqual([50, 10, 40, 20, 30]);
  expect(most).toBe(2);
  expect(await mapLimited([], 3, async () => 1)).toEqual([]);
});

test('starts nothing more after a failure, and waits for what runs', async () => {
  const done: number[] = [];
  const second = Promise.withResolvers<void>();
  const work = mapLimited([1, 2, 3, 4], 2, async (item) => {
    if (item === 1) throw new Error('first');
    await second.promise;
    done.push(item);
  });
  const failed = expect(work).rejects.toThrow('first');
  await settle();
  second.resolve();
  await failed;
  expect(done).toEqual([2]);
});
