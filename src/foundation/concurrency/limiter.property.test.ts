import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { ManualClock } from '../time/manual-clock.ts';
import { Limiter } from './limiter.ts';

const never = () => new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

function open(maxRunning = 1, maxWithSlow = 4) {
  const clock = new ManualClock();
  return { clock, limiter: new Limiter({ maxRunning, maxWithSlow, slowAfterMs: 1_000, clock }) };
}

test('sections run in the order of the requests, and never more than the bound', async () => {
  const { limiter } = open(2);
  const order: number[] = [];
  const releases: (() => void)[] = [];
  for (const at of [0, 1, 2, 3])
    void limiter.acquire(never()).then((release) => {
      order.push(at);
      releases.push(release);
    });
  await settle();
  expect(order).toEqual([0, 1]);
  releases[1]?.();
  await settle();
  expect(order).toEqual([0, 1, 2]);
  releases[0]?.();
  await settle();
  expect(order).toEqual([0, 1, 2, 3]);
});

test('a slow section leaves its place to others, up to a bound', async () => {
  const { limiter, clock } = open(1, 3);
  let taken = 0;
  for (let at = 0; at < 5; at += 1) void limiter.acquire(never()).then(() => (taken += 1));
  for (const expected of [1, 2, 3, 3]) {
    await settle();
    expect(taken).toBe(expected);
    clock.advance(1_000);
  }
});

test('a request that is aborted while it waits gets nothing and holds up no other', async () => {
  const { limiter, clock } = open();
  const release = await limiter.acquire(never());
  const controller = new AbortController();
  const given = limiter.acquire(controller.signal);
  const next = limiter.acquire(never());
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(given).rejects.toBe(reason);
  await expect(limiter.acquire(controller.signal)).rejects.toBe(reason);
  release();
  (await next)();
  expect(clock.pending).toBe(0);
});

test('closing refuses the requests that wait and later ones', async () => {
  const { limiter } = open();
  await limiter.acquire(never());
  const waiting = limiter.acquire(never());
  const reason = new Error('closed');
  limiter.close(reason);
  await expect(waiting).rejects.toBe(reason);
  await expect(limiter.acquire(never())).rejects.toBe(reason);
});

test('in any sequence the bounds hold, and every request that waits is granted in the end', async () => {
  const action = fc.oneof(
    fc.constant({ type: 'take' } as const),
    fc.record({ type: fc.constant('release' as const), which: fc.nat() }),
    fc.record({ type: fc.constant('abort' as const), which: fc.nat() }),
    fc.record({ type: fc.constant('wait' as const), time: fc.integer({ min: 1, max: 1_500 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const { limiter, clock } = open(2, 5);
      const held: { since: number; release: () => void }[] = [];
      const waiting = new Set<AbortController>();
      const take = () => {
        const controller = new AbortController();
        waiting.add(controller);
        limiter.acquire(controller.signal).then(
          (release) => {
            waiting.delete(controller);
            held.push({ since: clock.now(), release });
          },
          () => waiting.delete(controller),
        );
      };
      const check = async () => {
        await settle();
        const fast = held.filter(({ since }) => clock.now() - since < 1_000).length;
        expect(fast).toBeLessThanOrEqual(2);
        expect(held.length).toBeLessThanOrEqual(5);
        // No request waits while there is room.
        if (waiting.size > 0) expect(fast === 2 || held.length === 5).toBe(true);
      };
      for (const each of actions) {
        if (each.type === 'take') take();
        else if (each.type === 'wait') clock.advance(each.time);
        else if (each.type === 'abort') [...waiting][each.which % Math.max(1, waiting.size)]?.abort();
        else held.splice(each.which % Math.max(1, held.length), 1)[0]?.release();
        await check();
      }
      while (held.length > 0) {
        held.pop()?.release();
        await check();
      }
      expect(waiting.size).toBe(0);
    }),
    { numRuns: runs(50) },
  );
});
