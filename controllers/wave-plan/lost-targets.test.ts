import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, waveBench } from '../../test/support/wave-bench.ts';
import type { WavePlanOptions } from './wave-plan-controller.ts';

const TWO = {
  selector: { repositories: ['apps'] },
  waves: [
    { name: 'canary', count: 1 },
    { name: 'all', percent: 100 },
  ],
  ...BY_CONDITION,
};
const APPS = { namespace: 'default', name: 'apps' };

/** The store as it is while `isOpen` returns false: no repository can be read. */
function closable({ store }: Fixture, isOpen: () => boolean): WavePlanOptions['store'] {
  return new Proxy(store, {
    get(target, name) {
      if (!isOpen() && (name === 'find' || name === 'findRepository')) return () => undefined;
      if (!isOpen() && name === 'list') return () => [];
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('targets that a corrected selector selects again have their place again, which their log has', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a', 'b', 'c');
  await bench.plan(TWO);
  await bench.settle();
  const before = await bench.phases();
  expect(before.toSorted((one, other) => one.length - other.length)).toHaveLength(3);
  await bench.change({ selector: { repositories: ['apsp'] } });
  await bench.settle();
  expect((await bench.phases()).filter((one) => one.endsWith('Skipped'))).toHaveLength(2);
  await bench.change({ selector: { repositories: ['apps'] } });
  await bench.settle();
  expect(await bench.phases()).toEqual(before);
  const back = (await bench.targets()).find(({ record }) => record?.phase === 'Pending')?.record;
  expect(back?.order.joined).toBe(0);
  expect(back?.log.map(({ transition }) => transition)).toEqual(['Joined', 'Skipped', 'Joined']);
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(3);
});

const ONE_BY_ONE = { name: 'all', percent: 100, maxConcurrency: 1 };

test.each([
  ['the only wave', [ONE_BY_ONE], 1],
  ['the last wave', [{ name: 'canary', count: 1 }, ONE_BY_ONE], 2],
  [
    'the first wave',
    [
      { ...ONE_BY_ONE, percent: 75 },
      { name: 'rest', percent: 100 },
    ],
    1,
  ],
])(
  'a typing error in the selector during %s, in which something is verified, is corrected',
  async (_, waves, began) => {
    await using world = await fixture(new ManualClock());
    const bench = await waveBench(world);
    const goOn = async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1) {
        await bench.settle();
        await bench.verify();
      }
    };
    await bench.propose('a', 'b', 'c', 'd');
    await bench.plan({ ...TWO, waves });
    await goOn(began);
    const names = waves.map(({ name }) => name);
    await bench.change({ selector: { repositories: ['apsp'] } });
    await bench.settle();
    expect(bench.published()).toHaveLength(began);
    const { phase, conditions } = (await bench.read()).status ?? {};
    expect(phase).toBe('Completed');
    const left = `${4 - began} targets`;
    expect(findCondition(conditions, 'Selected')).toMatchObject({
      ...{ status: 'False', reason: 'NothingSelected' },
      message: expect.stringMatching(new RegExp(`correct spec.selector: ${left} .*, still proposed, would be back$`)),
    });
    await bench.change({ selector: { repositories: ['apps'] } });
    await goOn(1);
    // What is back is approved as before, one at a time.
    expect(bench.published()).toHaveLength(began + 1);
    await goOn(5);
    expect(bench.published()).toHaveLength(4);
    const { status } = await bench.read();
    expect(status).toMatchObject({ phase: 'Completed', targets: { total: 4, verified: 4, skipped: 0 } });
    expect(status?.waves?.map(({ name }) => name)).toEqual(names);
    expect(findCondition(status?.conditions, 'Selected')?.status).toBe('True');
  },
);

test('a typing error in the selector during a wave that a user has passed is corrected', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a', 'b', 'c');
  await bench.plan({ ...TWO, waves: [ONE_BY_ONE] });
  await bench.settle();
  await bench.change({ promotePast: 'all' });
  await bench.settle();
  await bench.change({ selector: { repositories: ['apsp'] } });
  await bench.settle();
  expect((await bench.read()).status?.phase).toBe('Completed');
  await bench.change({ selector: { repositories: ['apps'] } });
  for (let round = 0; round < 4; round += 1) {
    await bench.settle();
    await bench.verify();
  }
  expect(bench.published()).toHaveLength(3);
});

test('a completed plan stays as it is if a change of its spec has no place for what it had skipped', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a', 'b', 'c');
  await bench.plan({ ...TWO, waves: [{ name: 'canary', count: 1 }] });
  await bench.settle();
  await bench.verify();
  await bench.settle();
  await bench.change({ progressDeadline: '2h' });
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Completed', targets: { total: 1, skipped: 2 } });
  expect((await world.events('web')).filter((event) => event.startsWith('Reopened'))).toEqual([]);
});

test.each([
  ['resumes the plan', { resume: 1 }],
  ['passes it', { promotePast: 'all' }],
])(
  'a removed wave does not wait for targets of a repository that is not registered any more, once a user %s',
  async (_, decision) => {
    await using world = await fixture(new ManualClock());
    let isOpen = true;
    const bench = await waveBench(world, { store: closable(world, () => isOpen) });
    await bench.propose('a', 'b', 'c');
    await bench.plan({ ...TWO, waves: [ONE_BY_ONE], maxUnreachable: 10, progressDeadline: '1m' });
    await bench.settle();
    await bench.verify();
    isOpen = false;
    await world.client.delete(repositoryKind, APPS);
    await bench.change({ waves: [{ name: 'rest', percent: 100 }] });
    await bench.settle();
    expect((await bench.read()).status?.phase).toBe('Paused');
    await bench.change(decision);
    await bench.settle();
    expect((await bench.read()).status?.waves?.map(({ name }) => name)).toEqual(['all', 'rest']);
    bench.monotonicMs += 60_000;
    await bench.settle();
    expect((await bench.phases()).map((one) => one.slice(2)).sort()).toEqual([
      'Unreachable',
      'Unreachable',
      'Verified',
    ]);
    await bench.settle();
    expect((await bench.read()).status?.phase).toBe('Completed');
  },
);

test('targets of a repository that is registered once more stay in the plan; meanwhile it does not decide that they are gone', async () => {
  await using world = await fixture(new ManualClock());
  let isOpen = true;
  const bench = await waveBench(world, { store: closable(world, () => isOpen) });
  await bench.propose('a', 'b', 'c');
  await bench.plan({ ...TWO, waves: [{ name: 'all', percent: 100, maxConcurrency: 1 }] });
  await bench.settle();
  const before = await bench.phases();
  expect(before.map((one) => one.slice(2)).sort()).toEqual(['Approved', 'Assigned', 'Assigned']);
  isOpen = false;
  const repository = await world.client.get(repositoryKind, APPS);
  await world.client.delete(repositoryKind, APPS);
  await bench.settle();
  expect(await bench.phases()).toEqual(before);
  // What it cannot approve within the deadline cannot be reached.
  await bench.verify();
  await bench.settle();
  bench.monotonicMs += 60_000;
  await bench.change({ progressDeadline: '1s' });
  await bench.settle();
  const reasons = (await bench.targets()).map(({ record }) => record?.reason);
  expect(reasons).toContain('it was not approved within the deadline: repository apps is not registered');
  await world.client.create(repositoryKind, { metadata: APPS, spec: repository.spec });
  isOpen = true;
  await bench.change({ resume: 1 });
  for (let round = 0; round < 3; round += 1) {
    await bench.settle();
    await bench.verify();
  }
  expect(bench.published()).toHaveLength(3);
});

test('waves that do not contain all targets have a warning at the start; the end has the reasons of what is skipped', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a', 'b', 'c');
  await bench.plan({ ...TWO, waves: [{ name: 'canary', count: 1 }], order: { salt: 'x' } });
  await bench.settle();
  const condition = findCondition((await bench.read()).status?.conditions, 'Covered');
  const left = (await bench.targets())
    .filter(({ record }) => record?.phase === 'Pending')
    .map(({ spec }) => spec.package);
  expect(condition).toMatchObject({ status: 'False', reason: 'TargetsNotCovered' });
  expect(condition?.message).toMatch(
    /^the waves of the plan contain 1 of 3 targets, without apps\/., apps\/.: what is left is skipped at the end; end spec.waves with one of percent: 100/,
  );
  for (const name of left) expect(condition?.message).toContain(`apps/${name}`);
  expect(await world.events('web')).toContain(`TargetsNotCovered: ${condition?.message}`);
  await bench.change({ waves: TWO.waves });
  await bench.settle();
  expect(findCondition((await bench.read()).status?.conditions, 'Covered')).toBeUndefined();
  await bench.change({ waves: [{ name: 'canary', count: 1 }] });
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({
    phase: 'Completed',
    message: 'every wave is completed; 2 skipped (no wave of the plan contains it)',
  });
});

test('whether a plan selects anything is decided once its repositories have been read', async () => {
  await using world = await fixture(new ManualClock());
  let isOpen = false;
  const bench = await waveBench(world, { store: closable(world, () => isOpen) });
  await bench.propose('a');
  const { selector: _all, ...everything } = TWO;
  const repository = await world.client.get(repositoryKind, APPS);
  await world.client.delete(repositoryKind, APPS);
  await bench.plan(everything);
  await bench.settle();
  await world.client.create(repositoryKind, { metadata: APPS, spec: repository.spec });
  await bench.settle();
  isOpen = true;
  await bench.settle();
  expect(await world.events('web')).toEqual(['WaveStarted: wave canary has started with 1 targets']);
});

test('a pause that was requested names the user, and since when', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a');
  await bench.plan({ ...TWO, paused: true, pausedBy: 'anna' });
  await bench.settle();
  expect((await bench.read()).status?.message).toMatch(
    /^Requested: anna requested it \(since 2026-01-01T00:00:\d\dZ\); continue with "sluice wave resume web"/,
  );
});
