import { expect, test } from 'vitest';
import { settle } from '../time/manual-clock.ts';
import { ShareLimiter } from './share-limiter.ts';

test('shares take turns, each runs its bounded number, and too many that wait are refused', async () => {
  const limiter = new ShareLimiter({ maxRunning: 2, maxRunningOfShare: 1, maxWaitingOfShare: 3 });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (share: string, name: string) =>
    limiter.run(share, () => {
      started.push(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.set(name, resolve);
      return promise;
    });
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => run('a', name));
  await expect(run('a', 'a5')).rejects.toMatchObject({ code: 'Unavailable' });
  for (const name of ['b1', 'b2', 'c1']) all.push(run(name.slice(0, 1), name));
  await settle();
  expect(started).toEqual(['a1', 'b1']);
  for (let ended = 0; ended < 7; ended += 1) {
    await expect.poll(() => started.length).toBeGreaterThan(ended);
    expect(started.length - ended).toBeLessThanOrEqual(2);
    ends.get(started[ended] ?? '')?.();
    await settle();
  }
  await Promise.all(all);
  expect(new Set(started).size).toBe(7);
  expect(started.indexOf('c1')).toBeLessThan(started.indexOf('a3'));
});
