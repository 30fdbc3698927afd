import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { mapLimited } from './map-limited.ts';

test('keeps the order and the limit', async () => {
  let running = 0;
  let most = 0;
  const results = await mapLimited([5, 1, 4, 2, 3], 2, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await delay(item);
    running -= 1;
    return item * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30]);
  expect(most).toBe(2);
  expect(await mapLimited([], 3, async () => 1)).toEqual([]);
});

test('starts nothing more after a failure, and waits for what runs', async () => {
  const done: number[] = [];
  const work = mapLimited([1, 2, 3, 4], 2, async (item) => {
    if (item === 1) throw new Error('first');
    await delay(5);
    done.push(item);
  });
  await expect(work).rejects.toThrow('first');
  expect(done).toEqual([2]);
});
