import { describe, expect, test } from 'vitest';
import { SharedLists } from '../../../src/forge/shared-lists.ts';
import { eachUserPulls } from '../../../test/support/user-pull-bench.ts';
import { UserPulls } from './user-pulls.ts';

const open = eachUserPulls();

test('of more changes than one list has, none is missed of those that were open: neither a merge nor a change', async () => {
  const { clock, forge, world } = open();
  const count = 1100;
  // Each change takes the host a second, and its clock is not ahead.
  clock.advance(Date.UTC(2031, 0, 1) - clock.now());
  const pulls = new UserPulls(
    forge,
    { base: 'main', isOwn: async () => 'none' },
    new SharedLists(clock).reader(''),
    clock,
  );
  const repository = world.store.repository('apps');
  const poll = () => {
    clock.advance(30_000);
    const watched = {
      repository,
      findRepository: () => repository,
      policies: '',
      mergedSince: '2030-01-01T00:00:00Z',
      maxAgeMs: 0,
    };
    return pulls.poll(watched, new AbortController().signal);
  };
  for (let number = 1; number <= count; number += 1)
    await forge.open({ head: `feature-${number}`, base: 'main', title: 'change', body: '' });
  expect((await poll()).changed).toHaveLength(count);
  for (let turn = 0; turn < 2; turn += 1) await poll();
  const { updatedAt: closedAt } = forge.change(1, { state: 'merged', merged: { commit: 'f'.repeat(40), by: 'bob' } });
  forge.change(1, { closedAt });
  for (let number = 2; number <= count; number += 1) forge.change(number, { title: 'other' });
  expect((await poll()).changed).toHaveLength(count);
  expect(pulls.merged().map(({ pull, isMissed }) => [pull.number, isMissed])).toEqual([[1, false]]);
});

test('of more merges than the first list has, none is missed that was made while no process ran', async () => {
  const { clock, forge, world } = open();
  const count = 1700;
  clock.advance(Date.UTC(2031, 0, 1) - clock.now());
  for (let number = 1; number <= count; number += 1) {
    await forge.open({ head: `feature-${number}`, base: 'main', title: 'change', body: '' });
    forge.change(number, { state: 'merged', merged: { commit: 'f'.repeat(40), by: 'bob' } });
  }
  const pulls = new UserPulls(
    forge,
    { base: 'main', isOwn: async () => 'none' },
    new SharedLists(clock).reader(''),
    clock,
  );
  const repository = world.store.repository('apps');
  const watched = {
    ...{ repository, findRepository: () => repository, policies: '' },
    ...{ mergedSince: '2030-01-01T00:00:00Z', maxAgeMs: undefined },
  };
  const read: unknown[] = [];
  do {
    await pulls.poll(watched, new AbortController().signal);
    read.push([pulls.merged().length, pulls.isReadingMissed]);
  } while (pulls.isReadingMissed);
  expect(read).toEqual([
    [500, true],
    [1000, true],
    [count, false],
  ]);
  expect(pulls.merged().every(({ isMissed }) => isMissed)).toBe(true);
  expect(pulls.merged().map(({ pull }) => pull.number)[0]).toBe(1);
});

describe('after a failure to read Git, once the host was read', () => {
  async function setUp(isMerged: boolean, failures = 1) {
    const { clock, forge, world } = open();
    clock.advance(Date.UTC(2031, 0, 1) - clock.now());
    let fails = isMerged ? 0 : failures;
    const isOwn = async () => {
      if (fails-- > 0) throw new Error('git: cannot read the object');
      return 'none' as const;
    };
    const pulls = new UserPulls(forge, { base: 'main', isOwn }, new SharedLists(clock).reader(''), clock);
    const repository = world.store.repository('apps');
    const poll = () => {
      clock.advance(30_000);
      const watched = {
        ...{ repository, findRepository: () => repository, policies: '' },
        ...{ mergedSince: '2030-01-01T00:00:00Z', maxAgeMs: 0 },
      };
      return pulls.poll(watched, new AbortController().signal);
    };
    if (isMerged) {
      await poll();
      fails = 1;
    }
    for (let number = 1; number <= 3; number += 1)
      await forge.open({ head: `proposed/web/w${number}`, base: 'main', title: 'change', body: '' });
    return { forge, pulls, poll };
  }

  test('all open pull requests are looked at, and none waits for the one that failed', async () => {
    const { poll, pulls } = await setUp(false);
    const first = await poll();
    expect(first).toEqual({ changed: [expect.any(Number), expect.any(Number)], failure: expect.any(Error) });
    expect(pulls.hasBegun).toBe(false);
    const { changed } = await poll();
    expect([...new Set([...first.changed, ...changed])].sort()).toEqual([1, 2, 3]);
    expect([pulls.hasBegun, pulls.hasChanged]).toEqual([true, false]);
  });

  test('a change is one, whatever is taken over after it', async () => {
    const { forge, poll, pulls } = await setUp(false, 3);
    await poll();
    forge.change(2, { title: 'other' });
    await poll();
    expect(pulls.hasChanged).toBe(true);
  });

  test('no merge is lost', async () => {
    const { forge, poll, pulls } = await setUp(true);
    forge.change(1, { state: 'merged', merged: { commit: 'f'.repeat(40), by: 'bob' } });
    forge.change(2, { title: 'other' });
    expect(await poll()).toMatchObject({ failure: expect.any(Error) });
    for (let turn = 0; turn < 2; turn += 1) await poll();
    expect(pulls.merged().map(({ pull }) => pull.number)).toEqual([1]);
  });
});
