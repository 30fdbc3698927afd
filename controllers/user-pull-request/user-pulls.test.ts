import { expect, test } from 'vitest';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { eachUserPulls } from '../../test/support/user-pull-bench.ts';
import { UserPulls } from './user-pulls.ts';

const open = eachUserPulls();

test('of more changes than one list has, none is missed of those that were open: neither a merge nor a change', async () => {
  const { clock, forge, world } = open();
  const count = 1100;
  // Each change takes the host a second, and its clock is not ahead.
  clock.advance(Date.UTC(2031, 0, 1) - clock.now());
  const pulls = new UserPulls(
    forge,
    { base: 'main', isOwn: async () => false },
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
  expect(await poll()).toHaveLength(count);
  for (let turn = 0; turn < 2; turn += 1) await poll();
  const { updatedAt: closedAt } = forge.change(1, { state: 'merged', merged: { commit: 'f'.repeat(40), by: 'bob' } });
  forge.change(1, { closedAt });
  for (let number = 2; number <= count; number += 1) forge.change(number, { title: 'other' });
  expect(await poll()).toHaveLength(count);
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
    { base: 'main', isOwn: async () => false },
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
