import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, PACKAGES, startPlan, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';

let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  world = await fixture(new ManualClock());
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

const ONE_BY_ONE = { order: { salt: 's' }, waves: [{ name: 'all', percent: 100, maxConcurrency: 1 }], ...BY_CONDITION };
const REST = { name: 'rest', percent: 100 };
const SOAKING = { name: 'canary', percent: 25, soak: '30m' };

/** Verifies what is published, and lets the plan go on, several times. */
async function goOn(): Promise<void> {
  for (let round = 0; round < PACKAGES.length; round += 1) {
    await bench.verify();
    await bench.settle();
  }
}
const packagesIn = async (phase: string) =>
  (await bench.targets()).flatMap(({ spec, record }) => (record?.phase === phase ? spec.package : []));
const statusOf = async () => (await bench.read()).status;

test('what a selector that is narrowed no longer matches is skipped before its approval, also in the wave in progress', async () => {
  await startPlan(bench, ONE_BY_ONE);
  const before = bench.published();
  const [approved = ''] = await packagesIn('Approved');
  expect(await packagesIn('Assigned')).toHaveLength(3);
  await bench.change({ selector: { packages: [approved] } });
  await bench.settle();
  expect(await packagesIn('Skipped')).toHaveLength(3);
  await goOn();
  expect(bench.published()).toEqual(before);
  expect(await statusOf()).toMatchObject({ phase: 'Completed', targets: { total: 1, skipped: 3 } });
});

test('what waits behind a closed gate is skipped too, and has its place again once the selector matches it again', async () => {
  const gate = { conditionType: 'example.com/Reviewed', approveOnly: true };
  const policy = { metadata: { name: 'reviewed' }, spec: { selector: {}, requiredGates: [gate] } };
  await bench.propose(...PACKAGES);
  await world.client.create(packagePolicyKind, policy);
  await expect.poll(() => world.policyFor(world.store.get('apps.a.w1')).requiredGates).toHaveLength(1);
  await bench.plan({ ...ONE_BY_ONE, waves: [{ name: 'all', percent: 100 }] });
  await bench.settle();
  expect(await packagesIn('Approving')).toEqual(PACKAGES);
  // A typing error.
  await bench.change({ selector: { repositories: ['apsp'] } });
  await bench.settle();
  expect(await packagesIn('Skipped')).toEqual(PACKAGES);
  const selected = findCondition((await statusOf())?.conditions, 'Selected');
  expect(selected?.message).toContain('4 targets (apps/a, apps/b, apps/c and 1 more), still proposed, would be back');
  await bench.change({ selector: { repositories: null, packages: ['a', 'b'] } });
  await bench.settle();
  expect(await packagesIn('Approving')).toEqual(['a', 'b']);
  expect((await bench.targets()).map(({ record }) => record?.order.joined)).toEqual([0, 0, 0, 0]);
  await world.client.delete(packagePolicyKind, { name: 'reviewed' });
  await expect.poll(() => world.policyFor(world.store.get('apps.a.w1')).requiredGates).toEqual([]);
  bench.monotonicMs += 15_000;
  await bench.settle();
  expect(bench.published()).toEqual(['a v1', 'b v1']);
});

test('what the selector of the wave in progress no longer matches waits for a later wave', async () => {
  const named = (...packages: readonly string[]) => ({
    ...BY_CONDITION,
    waves: [
      { name: 'one', selector: { packages }, maxConcurrency: 1 },
      { ...REST, approval: { manual: true } },
    ],
  });
  await startPlan(bench, named('a', 'b', 'c'));
  const before = bench.published();
  const [approved = ''] = await packagesIn('Approved');
  await bench.change(named(approved));
  await bench.settle();
  expect(await packagesIn('Pending')).toHaveLength(3);
  await goOn();
  expect(bench.published()).toEqual(before);
  expect((await statusOf())?.message).toContain('wave rest waits for 1 of 1 approvals');
});

test('a wave in progress that is renamed pauses the plan, and goes on with its soak once it has its name again', async () => {
  await startPlan(bench, { ...BY_CONDITION, waves: [SOAKING, REST], onFailure: 'Rollback' });
  await bench.verify();
  await bench.settle();
  await bench.change({ waves: [{ ...SOAKING, name: 'canary-eu' }, REST] });
  bench.monotonicMs += 60_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  expect(await statusOf()).toMatchObject({
    ...{ phase: 'Paused', pause: { cause: 'WaveRemoved' } },
    message: expect.stringMatching(
      /^WaveRemoved: wave canary is in progress, and spec.waves has no wave of this name any more; give it its name again, which ends the pause, or resume/,
    ),
  });
  await bench.change({ waves: [SOAKING, REST] });
  await bench.settle();
  expect((await statusOf())?.message).toContain('it soaks for 29 more minutes');
  expect(bench.published()).toHaveLength(1);
});

test('a user who resumes lets a removed wave end with what it has approved, once that is verified', async () => {
  const waves = [{ name: 'half', percent: 50, soak: '30m', maxConcurrency: 1 }, REST];
  await startPlan(bench, { ...BY_CONDITION, waves });
  await bench.change({ waves: [{ name: 'one', count: 1 }, REST] });
  await bench.settle();
  await bench.change({ resume: 1 });
  await bench.settle();
  // It is not verified yet.
  expect((await statusOf())?.waves).toMatchObject([{ name: 'half', isRemoved: true, targets: 1 }]);
  expect(bench.published()).toHaveLength(1);
  await bench.verify();
  bench.restart();
  await bench.settle();
  expect((await statusOf())?.waves).toMatchObject([{ name: 'half', targets: 1 }, { name: 'one' }]);
  expect(bench.published()).toHaveLength(2);
  expect(await world.events('web')).toContain(
    'RemovalAccepted: wave half, which spec.waves has no longer, ends without a soak and without an analysis: a user resumed the plan',
  );
});

test('a removed wave that a user passes ends at once, and its other targets wait for the waves of the spec', async () => {
  const waves = [{ name: 'half', percent: 50, soak: '30m', maxConcurrency: 1 }, REST];
  await startPlan(bench, { ...BY_CONDITION, waves });
  await bench.change({ waves: [{ ...REST, approval: { manual: true } }] });
  await bench.settle();
  await bench.change({ promotePast: 'half' });
  await bench.settle();
  expect(await statusOf()).toMatchObject({ phase: 'Running', waves: [{ name: 'half', isPromoted: true, targets: 1 }] });
  expect(await packagesIn('Pending')).toHaveLength(3);
  expect(bench.published()).toHaveLength(1);
});

test('a promotion passes no wave that is inserted after it was carried out', async () => {
  await startPlan(bench, { ...BY_CONDITION, waves: [{ name: 'canary', count: 1 }, REST] });
  await bench.change({ promotePast: 'canary', paused: true });
  await bench.settle();
  const mid = { name: 'mid', count: 1, soak: '1h' };
  await bench.change({ paused: false, waves: [mid, { name: 'canary', count: 1 }, REST] });
  await bench.settle();
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(2);
  expect((await statusOf())?.message).toContain('wave mid: 1 of 1 targets verified; it soaks for 60 more minutes');
});
