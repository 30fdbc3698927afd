import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { FairQueue, type FairQueueLimits } from './fair-queue.ts';

const LIMITS: FairQueueLimits = {
  ...{ maxRunning: 2, maxRunningOfUser: 2 },
  ...{ maxWaiting: 10, maxWaitingOfUser: 5, maxWaitMs: 1000 },
};
const GOING_ON = new AbortController().signal;

/** A queue whose requests write down when they get their place. */
function open(limits: Partial<FairQueueLimits> = {}) {
  const clock = new ManualClock(0);
  const queue = new FairQueue({ ...LIMITS, ...limits }, clock);
  const started: string[] = [];
  const places = new Map<string, () => void>();
  return {
    ...{ clock, queue, started },
    async enter(user: string, name: string, signal = GOING_ON): Promise<string> {
      try {
        places.set(name, await queue.acquire(user, signal));
        started.push(name);
        return 'started';
      } catch (error) {
        return (error as { code: string }).code;
      }
    },
    async leave(name: string): Promise<void> {
      places.get(name)?.();
      // The next one starts behind the microtasks of its promise.
      await new Promise(setImmediate);
    },
  };
}

describe('a full queue', () => {
  test('gives a free place to the user with the fewest requests, and then in turn', async () => {
    const { queue, enter, leave, started } = open();
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void enter('a', name);
    for (const name of ['b1', 'b2']) void enter('b', name);
    void enter('c', 'c1');
    await leave('nothing');
    expect(started).toEqual(['a1', 'a2']);
    await leave('a1');
    await leave('a2');
    expect(started.slice(2)).toEqual(['b1', 'a3']);
    await leave('b1');
    await leave('a3');
    expect(started.slice(4)).toEqual(['c1', 'b2']);
    expect([queue.running, queue.waiting]).toEqual([2, 2]);
    for (const name of ['c1', 'b2', 'a4', 'a5']) await leave(name);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });

  test('refuses what is more than a user, or all users, may have waiting', async () => {
    const { enter } = open({ maxRunning: 1, maxWaiting: 3, maxWaitingOfUser: 2 });
    expect(await enter('a', 'a1')).toBe('started');
    void enter('a', 'a2');
    void enter('a', 'a3');
    expect(await enter('a', 'a4')).toBe('TooManyRequests');
    void enter('b', 'b1');
    expect(await enter('b', 'b2')).toBe('TooManyRequests');
  });

  test('rejects a request that waits too long, and drops one whose client disconnected', async () => {
    const { queue, clock, enter, leave, started } = open({ maxRunning: 1 });
    await enter('a', 'a1');
    const leaver = new AbortController();
    const [left, late] = [enter('b', 'b1', leaver.signal), enter('b', 'b2')];
    leaver.abort();
    expect(await left).toBe('Timeout');
    clock.advance(1000);
    expect(await late).toBe('TooManyRequests');
    expect(await enter('b', 'b3', leaver.signal)).toBe('Timeout');
    expect(queue.waiting).toBe(0);
    await leave('a1');
    expect([queue.running, started]).toEqual([0, ['a1']]);
  });
});

test('one user alone has a part of the places, and the rest is free for others', async () => {
  const { enter, leave, started } = open({ maxRunning: 4, maxRunningOfUser: 2 });
  for (const name of ['a1', 'a2', 'a3']) void enter('a', name);
  for (const name of ['b1', 'b2']) void enter('b', name);
  await leave('nothing');
  expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
  await leave('b1');
  expect(started).toHaveLength(4);
  await leave('a1');
  expect(started.at(-1)).toBe('a3');
});
