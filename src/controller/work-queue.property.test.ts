import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { ManualClock, settle } from '../foundation/time/manual-clock.ts';
import { WorkQueue } from './work-queue.ts';

function setUp(options: { baseDelay?: number; maxDelay?: number } = {}) {
  const clock = new ManualClock(0);
  return { clock, queue: new WorkQueue<string>({ clock, keyOf: (item) => item, ...options }) };
}

/** What is ready now, returned at once. */
async function drain(queue: WorkQueue<string>): Promise<string[]> {
  const taken: string[] = [];
  while (queue.metrics().depth > 0) {
    const item = await queue.take();
    if (item === undefined) break;
    taken.push(item);
  }
  for (const item of taken) queue.done(item);
  return taken;
}

describe('WorkQueue', () => {
  test('an item that is added twice is returned once, in the order of the first add', async () => {
    const { queue } = setUp();
    for (const item of ['a', 'b', 'a']) queue.add(item);
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('an item that is added while it is processed is queued again, after the others', async () => {
    const { queue } = setUp();
    queue.add('a');
    expect(await queue.take()).toBe('a');
    queue.add('a');
    queue.add('b');
    expect(queue.metrics().depth).toBe(1);
    queue.done('a');
    expect(await drain(queue)).toEqual(['b', 'a']);
  });

  test('the earlier of two waits counts, also when the wall clock is set between them', async () => {
    const { clock, queue } = setUp();
    queue.addAfter('a', 3_600_000);
    queue.addAfter('b', 1000);
    clock.setBy(86_400_000);
    queue.addAfter('a', 1000);
    clock.setBy(-2 * 86_400_000);
    queue.addAfter('b', 3_600_000);
    clock.advance(1000);
    expect((await drain(queue)).toSorted()).toEqual(['a', 'b']);
  });

  test('reports for how long items have been processed', async () => {
    const { clock, queue } = setUp();
    for (const item of ['a', 'b']) {
      queue.add(item);
      await queue.take();
      clock.advance(10);
    }
    expect(queue.metrics()).toMatchObject({ processing: 2, unfinishedMs: 30, longestMs: 20 });
    queue.done('a');
    expect(queue.metrics()).toMatchObject({ processing: 1, unfinishedMs: 10, longestMs: 10 });
    queue.done('b');
    expect(queue.metrics()).toMatchObject({ processing: 0, unfinishedMs: 0, longestMs: 0 });
  });

  test('an item that exceeds a limit lets others pass, and is taken when one of its limit is done', async () => {
    const { clock } = setUp();
    const queue = new WorkQueue<string>({
      ...{ clock, keyOf: (item) => item, baseDelayMs: 10 },
      limitsOf: ([name = '']) => [{ name, most: 2 }],
    });
    for (const item of ['a1', 'a2', 'a3', 'a4', 'b1']) queue.add(item);
    const taken = [await queue.take(), await queue.take(), await queue.take()];
    expect(taken).toEqual(['a1', 'a2', 'b1']);
    expect(queue.metrics()).toMatchObject({ depth: 2, processing: 3 });
    const next = queue.take();
    await settle();
    queue.add('a3');
    expect(queue.metrics().depth).toBe(2);
    queue.prioritize('a4');
    queue.done('a1');
    expect(await next).toBe('a4');
    for (const item of ['a2', 'a4', 'b1']) queue.done(item);
    expect(await drain(queue)).toEqual(['a3']);
    expect(queue.isQuiet()).toBe(true);
  });

  test('items with several limits are all processed, and no limit is exceeded', async () => {
    const items = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.boolean()), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(
        items,
        fc.integer({ min: 1, max: 6 }),
        fc.infiniteStream(fc.nat()),
        async (all, workers, picks) => {
          const { clock } = setUp();
          const names = all.map(([namespace, fails], index) => ({ id: `${namespace}${index}`, namespace, fails }));
          const limitsOf = ({ namespace, fails }: (typeof names)[number]) => [
            ...(fails ? [{ name: 'failing', most: 2 }] : []),
            ...(fails ? [{ name: `failing in ${namespace}`, most: 1 }] : []),
            { name: namespace, most: 2 },
          ];
          const queue = new WorkQueue<(typeof names)[number]>({ clock, keyOf: ({ id }) => id, limitsOf });
          const running: typeof names = [];
          const done: string[] = [];
          const take = () => void queue.take().then((item) => item !== undefined && running.push(item));
          for (let count = 0; count < workers; count += 1) take();
          for (const item of names) queue.add(item);
          while (done.length < names.length) {
            await Promise.resolve();
            await Promise.resolve();
            for (const { name, most } of names.flatMap(limitsOf))
              expect(
                running.filter((one) => limitsOf(one).some((limit) => limit.name === name)).length,
              ).toBeLessThanOrEqual(most);
            const [ended] = running.splice((picks.next().value ?? 0) % Math.max(1, running.length), 1);
            // None runs though some are ready: one was forgotten.
            if (ended === undefined) throw new Error(`only ${done.length} of ${names.length} were taken`);
            done.push(ended.id);
            queue.done(ended);
            take();
          }
          expect(new Set(done).size).toBe(names.length);
          queue.close();
        },
      ),
      { numRuns: runs(200) },
    );
  });

  test('of two delays the earlier one applies, in either order', async () => {
    for (const delays of [
      [100, 50],
      [50, 100],
    ]) {
      const { clock, queue } = setUp();
      for (const delay of delays) queue.addAfter('a', delay, `${delay} ms`);
      expect(queue.waiting()).toMatchObject([{ key: 'a', due: 50, cause: 'time', reason: '50 ms' }]);
      clock.advance(49);
      expect(queue.metrics().depth).toBe(0);
      clock.advance(1);
      expect(await drain(queue)).toEqual(['a']);
      clock.advance(1000);
      expect(queue.metrics().depth).toBe(0);
    }
  });

  test('an add ends a wait, and a delay does not delay a ready item', async () => {
    const { clock, queue } = setUp();
    queue.addAfter('a', 100);
    queue.add('a');
    queue.addAfter('a', 10);
    expect(queue.waiting()).toEqual([]);
    expect(await drain(queue)).toEqual(['a']);
    clock.advance(1000);
    expect(queue.metrics().depth).toBe(0);
  });

  test('failures wait 5 ms, doubling up to the limit, until forgotten; each item for itself', () => {
    const { clock, queue } = setUp();
    const delays: number[] = [];
    for (let failure = 0; failure < 22; failure += 1) {
      queue.addRateLimited('a');
      const due = queue.waiting()[0]?.due ?? Number.NaN;
      delays.push(due - clock.now());
      clock.advance(due - clock.now());
      void queue.take();
      queue.done('a');
    }
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(1_000_000);
    queue.addRateLimited('b');
    expect(queue.waiting()[0]).toMatchObject({ key: 'b', due: clock.now() + 5, cause: 'backoff' });
    queue.forget('a');
    queue.addRateLimited('a');
    expect(queue.failures('a')).toBe(1);
    expect(queue.metrics().retries).toBe(24);
  });

  test('only what waits for a time is quiet', async () => {
    const { clock, queue } = setUp();
    expect(queue.isQuiet()).toBe(true);
    queue.addAfter('a', 1000);
    expect(queue.isQuiet()).toBe(true);
    queue.addRateLimited('a');
    expect(queue.isQuiet()).toBe(false);
    expect(queue.isQuiet(1)).toBe(true);
    clock.advance(5);
    expect(queue.isQuiet(1)).toBe(false);
    expect(await queue.take()).toBe('a');
    expect(queue.isQuiet()).toBe(false);
    queue.done('a');
    expect(queue.isQuiet()).toBe(true);
  });

  test('close ends takers and drops what waits', async () => {
    const { clock, queue } = setUp();
    const pending = queue.take();
    queue.addAfter('a', 10);
    queue.close();
    expect(await pending).toBeUndefined();
    expect(await queue.take()).toBeUndefined();
    queue.add('b');
    expect(queue.metrics()).toMatchObject({ depth: 0, waiting: 0 });
    expect(clock.pending).toBe(0);
  });

  test('against a model: random operations, several workers', async () => {
    const operation = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), item: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constant('after' as const), item: fc.constantFrom('a', 'b', 'c'), delay: fc.nat(50) }),
      fc.record({ kind: fc.constant('fail' as const), item: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constant('take' as const) }),
      fc.record({ kind: fc.constant('done' as const), item: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constant('advance' as const), by: fc.nat(60) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 60 }), async (operations) => {
        const { clock, queue } = setUp();
        const model = new Model();
        for (const step of operations) {
          if (step.kind === 'add') {
            queue.add(step.item);
            model.add(step.item);
          } else if (step.kind === 'after') {
            queue.addAfter(step.item, step.delay);
            model.wait(step.item, step.delay, clock.now());
          } else if (step.kind === 'fail') {
            const delay = 5 * 2 ** queue.failures(step.item);
            queue.addRateLimited(step.item);
            model.wait(step.item, delay, clock.now());
          } else if (step.kind === 'advance') {
            clock.advance(step.by);
            model.advance(clock.now());
          } else if (step.kind === 'done') {
            queue.done(step.item);
            model.done(step.item);
          } else if (model.ready.length > 0) {
            const item = await queue.take();
            expect(item).toBe(model.take());
          }
          expect(queue.metrics()).toMatchObject({
            depth: model.ready.length,
            processing: model.processing.size,
            waiting: model.waits.size,
          });
          expect(new Map(queue.waiting().map(({ key, due }) => [key, due]))).toEqual(model.waits);
        }
      }),
      { numRuns: runs(1500) },
    );
  });

  test('every add is followed by a take, and no item is processed twice at the same time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        async (adds, workers) => {
          const { queue } = setUp();
          const inHand = new Set<string>();
          const lastSeen = new Map<string, number>();
          let step = 0;
          const work = async () => {
            for (let item = await queue.take(); item !== undefined; item = await queue.take()) {
              expect(inHand.has(item)).toBe(false);
              inHand.add(item);
              lastSeen.set(item, step);
              await settle();
              inHand.delete(item);
              queue.done(item);
            }
          };
          const running = Array.from({ length: workers }, work);
          const added = new Map<string, number>();
          for (const number of adds) {
            step += 1;
            added.set(`item-${number}`, step);
            queue.add(`item-${number}`);
            if (number === 0) await settle();
          }
          while (!queue.isQuiet()) await settle();
          for (const [item, when] of added) expect(lastSeen.get(item)).toBeGreaterThanOrEqual(when);
          queue.close();
          await Promise.all(running);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

/** The same rules, as plainly as possible. */
class Model {
  ready: string[] = [];
  readonly processing = new Set<string>();
  readonly again = new Set<string>();
  readonly waits = new Map<string, number>();

  add(item: string): void {
    this.waits.delete(item);
    if (this.processing.has(item)) this.again.add(item);
    else if (!this.ready.includes(item)) this.ready.push(item);
  }

  wait(item: string, delay: number, now: number): void {
    if (delay === 0) {
      this.add(item);
      return;
    }
    if (this.ready.includes(item) || this.again.has(item)) return;
    const old = this.waits.get(item);
    if (old !== undefined && old <= now + delay) return;
    // The map keeps the order in which the timers were set, which decides between items that are due together.
    this.waits.delete(item);
    this.waits.set(item, now + delay);
  }

  advance(now: number): void {
    const due = [...this.waits].filter(([, at]) => at <= now).sort((left, right) => left[1] - right[1]);
    for (const [item] of due) this.add(item);
  }

  take(): string | undefined {
    const item = this.ready.shift();
    if (item !== undefined) this.processing.add(item);
    return item;
  }

  done(item: string): void {
    if (this.processing.delete(item) && this.again.delete(item)) this.ready.push(item);
  }
}
