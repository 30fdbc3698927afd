import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { ManualClock } from '../../foundation/manual-clock.ts';
import { Slots } from './slots.ts';

const never = () => new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

function open(count = 1, most = 4) {
  const clock = new ManualClock();
  return { clock, slots: new Slots({ count, most, slowAfter: 1_000, clock }) };
}

test('slots go to those who asked first, and never more than there are', async () => {
  const { slots } = open(2);
  const order: number[] = [];
  const releases: (() => void)[] = [];
  for (const at of [0, 1, 2, 3])
    void slots.take(never()).then((release) => {
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

test('a slot that is held long leaves its place to others, up to a bound', async () => {
  const { slots, clock } = open(1, 3);
  let taken = 0;
  for (let at = 0; at < 5; at += 1) void slots.take(never()).then(() => (taken += 1));
  for (const expected of [1, 2, 3, 3]) {
    await settle();
    expect(taken).toBe(expected);
    clock.advance(1_000);
  }
});

test('who gives up waiting gets nothing and holds up nobody', async () => {
  const { slots, clock } = open();
  const release = await slots.take(never());
  const controller = new AbortController();
  const given = slots.take(controller.signal);
  const next = slots.take(never());
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(given).rejects.toBe(reason);
  await expect(slots.take(controller.signal)).rejects.toBe(reason);
  release();
  (await next)();
  expect(clock.pending).toBe(0);
});

test('closing refuses those that wait and those that come', async () => {
  const { slots } = open();
  await slots.take(never());
  const waiting = slots.take(never());
  const reason = new Error('closed');
  slots.close(reason);
  await expect(waiting).rejects.toBe(reason);
  await expect(slots.take(never())).rejects.toBe(reason);
});

test('whatever happens, the bounds hold and everyone who waits gets a slot in the end', async () => {
  const action = fc.oneof(
    fc.constant({ type: 'take' } as const),
    fc.record({ type: fc.constant('release' as const), which: fc.nat() }),
    fc.record({ type: fc.constant('abort' as const), which: fc.nat() }),
    fc.record({ type: fc.constant('wait' as const), time: fc.integer({ min: 1, max: 1_500 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const { slots, clock } = open(2, 5);
      const held: { since: number; release: () => void }[] = [];
      const waiting = new Set<AbortController>();
      const take = () => {
        const controller = new AbortController();
        waiting.add(controller);
        slots.take(controller.signal).then(
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
        // Nobody waits while there is room.
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
