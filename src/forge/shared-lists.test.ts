import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import type { PullRequest } from './forge.ts';
import { type ListReader, SharedLists } from './shared-lists.ts';

const NO_SIGNAL = new AbortController().signal;
const BEGIN = '2030-01-01T00:00:00Z';
const at = (second: number) => new Date(Date.parse(BEGIN) + second * 1000).toISOString();

describe('lists of pull requests that changed', () => {
  let clock: ManualClock;
  let lists: SharedLists;
  let pulls: PullRequest[];
  let requested: string[];
  beforeEach(() => {
    clock = new ManualClock(Date.parse(BEGIN));
    lists = new SharedLists(clock);
    pulls = [];
    requested = [];
  });

  const change = (number: number, second: number) => {
    const others = pulls.filter((pull) => pull.number !== number);
    pulls = [{ number, updatedAt: at(second) } as PullRequest, ...others];
  };
  const forge = {
    listUpdated: async (since: string) => {
      requested.push(since);
      const found = pulls.filter(({ updatedAt }) => Date.parse(updatedAt) >= Date.parse(since));
      // What changes while it is on its way is not in it.
      await Promise.resolve();
      return found;
    },
  };
  const read = async (reader: ReturnType<SharedLists['reader']>, since: string, maxAgeMs = 0) => {
    const updated = await reader.updated(forge, { since, maxAgeMs }, NO_SIGNAL);
    return updated.pulls.map(({ number }) => number);
  };

  test('are read again after the wall clock was set back, and after a change by a host whose clock was ahead', async () => {
    const one = lists.reader('apps');
    clock.setBy(86_400_000);
    await read(one, BEGIN);
    clock.setBy(-86_400_000);
    clock.advance(1000);
    change(1, 86_400);
    expect(await read(one, BEGIN, 1000)).toEqual([1]);
    change(2, 2);
    expect(await read(one, at(86_400))).toEqual([1, 2]);
  });

  test('of one reader are those of the others too, while they are recent', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('apps')];
    change(1, 1);
    expect(await read(one, BEGIN)).toEqual([1]);
    // What was listed before its first call is not all that it has to know.
    expect(await read(other, BEGIN, 1000)).toEqual([1]);
    expect(requested).toEqual([BEGIN, BEGIN]);
    change(2, 2);
    expect(await read(one, at(1))).toEqual([2, 1]);
    change(3, 3);
    expect(await read(one, at(2))).toEqual([3, 2]);
    clock.advance(999);
    expect(await read(other, at(1), 1000)).toEqual([3, 2, 1]);
    expect(requested).toHaveLength(4);
    // It has taken them.
    expect(await read(other, at(3), 1000)).toEqual([]);
    clock.advance(1);
    expect(await read(other, at(3), 1000)).toEqual([3]);
    expect(requested).toHaveLength(5);
  });

  test('begin where the last one ended, whatever a reader knows from elsewhere', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('apps')];
    change(1, 1);
    await read(one, BEGIN);
    await read(other, BEGIN);
    change(2, 2);
    change(3, 5);
    expect(await read(one, at(5))).toEqual([3, 2, 1]);
    expect(await read(other, at(1), 1000)).toEqual([3, 2, 1]);
    expect(requested).toEqual([BEGIN, BEGIN, at(1)]);
  });

  test('that are requested at the same time are one, in which the later reader has the later state', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('apps')];
    await read(one, BEGIN);
    await read(other, BEGIN);
    requested.length = 0;
    change(1, 1);
    expect(await Promise.all([read(one, BEGIN), read(other, BEGIN, 1000)])).toEqual([[1], [1]]);
    expect(requested).toEqual([BEGIN]);
  });

  test('are read by a reader itself where more wait for it than are kept, or the host fails', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('apps')];
    await read(other, BEGIN);
    for (let number = 1; number <= 1001; number += 1) change(number, 1);
    expect(await read(one, BEGIN)).toHaveLength(1001);
    expect(await read(other, at(1), 1000)).toHaveLength(1001);
    expect(requested).toEqual([BEGIN, BEGIN, at(1)]);
    const failing = { listUpdated: async () => Promise.reject(new Error('the host is down')) };
    await expect(one.updated(failing, { since: BEGIN, maxAgeMs: 0 }, NO_SIGNAL)).rejects.toThrow('the host is down');
    expect(await read(one, at(2), 0)).toHaveLength(1001);
  });

  test('are incomplete where more has changed than one list has, for each reader', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('apps')];
    await read(one, BEGIN);
    await read(other, BEGIN);
    const isComplete = async (reader: ListReader) =>
      (await reader.updated(forge, { since: BEGIN, maxAgeMs: 1000 }, NO_SIGNAL)).isComplete;
    clock.advance(1000);
    for (let number = 1; number < 1000; number += 1) change(number, 1);
    expect([await isComplete(one), await isComplete(other)]).toEqual([true, true]);
    clock.advance(1000);
    change(1000, 1);
    expect([await isComplete(one), await isComplete(other)]).toEqual([false, false]);
  });

  test('are of one repository alone, and forgotten with their last reader', async () => {
    const [one, other] = [lists.reader('apps'), lists.reader('infra')];
    await read(one, BEGIN);
    expect(await read(other, BEGIN, 1000)).toEqual([]);
    expect(requested).toHaveLength(2);
    one.close();
    await read(lists.reader('apps'), at(9), 1000);
    expect(requested.at(-1)).toBe(at(9));
  });
});
