import { expect, test } from 'vitest';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import type { Renderer } from '../../../src/package/plan/ports/renderer.ts';
import { type Exhausted, type ForkRenderings, forkRenderer } from './fork-renderer.ts';

function setUp() {
  const clock = new ManualClock();
  const memory: { exhausted?: Exhausted } = {};
  const renderings: ForkRenderings = new LruCache({ maxEntries: 10 });
  let count = 0;
  /** Takes four seconds for each package. */
  const slow: Renderer = {
    render: async ({ signal }) => {
      count += 1;
      clock.advance(4000);
      signal.throwIfAborted();
      return { kptfile: [] };
    },
  };
  const request = (name: string) => ({
    files: new Map([['a.yaml', Buffer.from(name)]]),
    namespace: 'default',
    validatorConditions: new Map(),
    signal: new AbortController().signal,
  });
  const check = async (head: string, ...names: readonly string[]) => {
    const one = forkRenderer(slow, { clock, head, memory, renderings });
    const found: string[] = [];
    for (const name of names)
      found.push(
        await one.render(request(name)).then(
          () => 'rendered',
          (error: { code: string }) => error.code,
        ),
      );
    return found;
  };
  return { clock, check, count: () => count };
}

test('a head has ten seconds for all of its packages, and is not rendered again soon', async () => {
  const { clock, check, count } = setUp();
  const all = ['a', 'b', 'c', 'd'];
  expect(await check('1', ...all)).toEqual(['rendered', 'rendered', 'LimitExceeded', 'LimitExceeded']);
  expect(count()).toBe(3);
  expect(await check('1', ...all)).toEqual(['rendered', 'rendered', 'LimitExceeded', 'LimitExceeded']);
  expect(count()).toBe(3);
  expect(await check('2', 'c', 'd')).toEqual(['rendered', 'rendered']);
  clock.advance(600_000);
  expect(await check('1', 'a')).toEqual(['rendered']);
  expect(count()).toBe(6);
});

test('a wall clock that was set ahead and back makes no pause longer', async () => {
  const { clock, check, count } = setUp();
  clock.setBy(86_400_000);
  expect(await check('1', 'a', 'b', 'c')).toEqual(['rendered', 'rendered', 'LimitExceeded']);
  clock.setBy(-86_400_000);
  clock.advance(600_000);
  expect(await check('1', 'a', 'c')).toEqual(['rendered', 'rendered']);
  expect(count()).toBe(5);
});
