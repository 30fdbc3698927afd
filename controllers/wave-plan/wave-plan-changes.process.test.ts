import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageDeliveryOf } from '../../src/delivery/delivered/delivered-package.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { PACKAGES, type Plan, startPlan, TWO, type WaveBench, waveBench } from '../../test/support/wave-bench.ts';

let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  world = await fixture(new ManualClock());
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

const start = (...plan: Plan) => startPlan(bench, ...plan);

/** Approves the second revision of a package, which is proposed, and proposes a third one. */
async function proposeThird(packageName: string): Promise<void> {
  const { store } = world;
  const second = `apps.${packageName}.w2`;
  await store.update(second, { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
  const source = { type: 'copy', source: second } as const;
  const { name } = await store.create('apps', { package: packageName, workspace: 'w3', source }, ANNA);
  await store.change(name, { files: new Map([['a.yaml', Buffer.from('a: third\n')]]) }, ANNA);
  await world.settle(name);
  await store.update(name, { action: 'propose' }, ANNA);
}

test('targets that join come last, rejected ones are skipped, and users may publish ahead', async () => {
  await start({
    ...TWO,
    waves: [
      { name: 'canary', count: 1 },
      { name: 'half', percent: 50 },
      { name: 'all', percent: 100 },
    ],
  });
  await bench.propose('e', 'f');
  const waiting = (await bench.targets()).filter(({ record }) => record?.phase === 'Pending');
  const [first, second] = waiting;
  await world.store.update(`apps.${first?.spec.package}.w1`, { action: 'reject' }, ANNA);
  await world.store.update(
    `apps.${second?.spec.package}.w1`,
    { action: 'approve' },
    { ...ANNA, actor: { name: 'berta' } },
  );
  await bench.settle();
  const phases = await bench.phases();
  expect(phases).toContain(`${first?.spec.package} Skipped`);
  expect(phases).toContain(`${second?.spec.package} Ahead`);
  expect(phases).toContain('f Pending');
  const joined = (await bench.targets()).filter(({ spec }) => spec.package > 'd');
  expect(joined.map(({ record }) => record?.order.joined)).toEqual([1, 1]);
  await bench.verify();
  await bench.settle();
  // 50 % of five: with the first wave, two of the three that were there, and one of the two that joined.
  const wavesOf = async (isMeant: RegExp) =>
    (await bench.targets())
      .filter(({ spec, record }) => isMeant.test(spec.package) && record?.phase !== 'Skipped')
      .flatMap(({ record }) => record?.wave ?? [])
      .sort();
  expect([await wavesOf(/[a-d]/), await wavesOf(/[ef]/)]).toEqual([['canary', 'half'], ['half']]);
});

test('a plan that is edited keeps what is recorded; later waves follow the new spec', async () => {
  await start();
  await bench.change({ waves: [TWO.waves[0], { name: 'two', count: 2 }, { name: 'rest', percent: 100 }] });
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(3);
  expect((await bench.read()).status?.waves.map(({ name, targets }) => `${name} ${targets}`)).toEqual([
    'canary 1',
    'two 2',
  ]);
});

test('a plan whose selector and present wave are edited skips what it selects no more, also after a restart', async () => {
  await start({ ...TWO, selector: { packages: ['a', 'b', 'c', 'd'] } });
  const [waiting, other] = (await bench.targets()).filter(({ record }) => record?.phase === 'Pending');
  const out = waiting?.spec.package ?? '';
  await bench.change({ selector: { packages: PACKAGES.filter((one) => one !== out) }, waves: TWO.waves.slice(1) });
  bench.restart();
  await bench.settle();
  expect(await bench.phases()).toContain(`${out} Skipped`);
  // The wave that was removed is in progress still, until a user resumes the plan.
  expect(await bench.phases()).toContain(`${other?.spec.package} Pending`);
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Paused', pause: { cause: 'WaveRemoved' } });
  expect(bench.published()).toHaveLength(1);
  await bench.change({ resume: 1 });
  await bench.settle();
  expect(bench.published()).toHaveLength(3);
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Completed', targets: { total: 3, skipped: 1 } });
});

test('a policy that is deleted and created again during a wave decides about each approval as it is then', async () => {
  await start({ ...TWO, waves: [{ name: 'all', percent: 100, maxConcurrency: 1 }] });
  const gate = { conditionType: 'example.com/Reviewed', approveOnly: true };
  const policy = { metadata: { name: 'reviewed' }, spec: { selector: {}, requiredGates: [gate] } };
  const gatesOf = () =>
    world.policyFor(world.store.get(world.store.list({ lifecycle: 'Proposed' })[0]?.name ?? '')).requiredGates;
  for (const count of [2, 3]) {
    await world.client.create(packagePolicyKind, policy);
    await expect.poll(() => gatesOf()).toHaveLength(1);
    await bench.verify();
    await bench.settle();
    expect(bench.published()).toHaveLength(count - 1);
    expect((await bench.read()).status?.message).toContain('1 wait for approval');
    await world.client.delete(packagePolicyKind, { name: 'reviewed' });
    await expect
      .poll(async () => {
        bench.monotonicMs += 15_000;
        await bench.settle();
        return bench.published().length;
      })
      .toBe(count);
  }
});

test('an analysis runs for the verified wave, with both cohorts; an inconclusive one pauses', async () => {
  const analysis = [{ template: 'errors', args: [{ name: 'limit', value: '5' }] }];
  await start({
    ...TWO,
    waves: [
      { name: 'canary', count: 1, analysis },
      { name: 'all', percent: 100 },
    ],
  });
  expect(bench.requests).toEqual([]);
  await bench.verify();
  await bench.settle();
  expect(bench.requests).toMatchObject([{ wave: 'canary', template: 'errors', args: [{ name: 'limit', value: '5' }] }]);
  expect([bench.requests[0]?.canary.length, bench.requests[0]?.untouched.length]).toEqual([1, 3]);
  const [name = ''] = bench.runs.keys();
  expect(name).toMatch(/^web-canary-1-1-[0-9a-f]{10}$/);
  bench.runs.set(name, { phase: 'Inconclusive', message: 'no samples' });
  await bench.settle();
  expect((await bench.read()).status?.pause).toEqual({
    cause: 'AnalysisInconclusive',
    message: 'analysis 1 of wave canary is Inconclusive: no samples',
  });
  await bench.change({ resume: 1 });
  await bench.settle();
  const again = [...bench.runs.keys()].at(-1) ?? '';
  expect(again).toMatch(/^web-canary-2-1-/);
  bench.runs.set(again, { phase: 'Successful', message: '' });
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
});

test('a rollback publishes the revisions before as new ones, and says where there is none', async () => {
  await bench.propose('a');
  await world.store.update('apps.a.w1', { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
  await bench.proposeNext('a');
  await bench.propose('b');
  await bench.plan({ ...TWO, waves: [{ name: 'all', percent: 100 }], onFailure: 'Rollback' });
  await bench.settle();
  expect(bench.published()).toEqual(['a v1', 'a v2', 'b v1']);
  await bench.verify(['a'], 'False');
  await bench.settle();
  const { status } = await bench.read();
  expect(status?.message).toBe('1 targets were not rolled back, such as apps/b: no published revision precedes v1');
  expect(status?.phase).toBe('RolledBack');
  expect(bench.published()).toEqual(['a v3', 'a v1', 'a v2', 'b v1']);
  const { files } = await world.store.content('apps.a.rollback-v2');
  expect(files.get('a.yaml')?.toString()).toBe('a: a\n');
});

test('the rollbacks of a wave in one repository are one commit, and each revision has its own reason', async () => {
  const approved = { ...ANNA, actor: { name: 'berta' } };
  await bench.propose(...PACKAGES);
  for (const name of PACKAGES) {
    await world.store.update(`apps.${name}.w1`, { action: 'approve' }, approved);
    await bench.proposeNext(name);
  }
  // Another number than the others.
  await proposeThird('d');
  await bench.plan({ ...TWO, waves: [{ name: 'all', percent: 100 }] });
  await bench.settle();
  const { path } = world.store.repository('apps').git;
  const commits = () => Number(git(path, ['rev-list', '--first-parent', '--count', 'main']));
  const before = commits();
  await bench.change({ rollback: true });
  await bench.settle();
  expect((await bench.read()).status?.phase).toBe('RolledBack');
  expect(commits() - before).toBe(1);
  const reasonOf = async (name: string) =>
    (await world.store.history(name)).find(({ action }) => action === 'approve')?.reason;
  expect(await reasonOf('apps.a.rollback-v2')).toBe('reverts v2 to v1: rollback of WavePlan web');
  expect(await reasonOf('apps.d.rollback-v3')).toBe('reverts v3 to v2: rollback of WavePlan web');
});

test.each(['Draft', 'Proposed'])(
  'a %s that a user put in the place of the copy of a rollback is not published',
  async (lifecycle) => {
    await bench.propose('a');
    await world.store.update('apps.a.w1', { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
    const source = { type: 'copy', source: 'apps.a.w1' } as const;
    const copyOf = async (workspace: string, text: string) => {
      const { name } = await world.store.create('apps', { package: 'a', workspace, source }, ANNA);
      await world.store.change(name, { files: new Map([['a.yaml', Buffer.from(text)]]) }, ANNA);
      await world.settle(name);
      return name;
    };
    await world.store.update(await copyOf('w2', 'a: changed\n'), { action: 'propose' }, ANNA);
    await bench.plan({ ...TWO, onFailure: 'Rollback' });
    await bench.settle();
    const planted = await copyOf('rollback-v2', 'a: planted\n');
    if (lifecycle === 'Proposed') await world.store.update(planted, { action: 'propose' }, ANNA);
    await bench.verify(['a'], 'False');
    await bench.settle();
    expect(bench.published()).toEqual(['a v1', 'a v2']);
    expect(world.store.get(planted).lifecycle).toBe(lifecycle);
    expect((await bench.read()).status?.message).toContain(
      'apps.a.rollback-v2 waits: its content or its gates are not those of v1, so it is not the copy of this rollback; delete it',
    );
    if (lifecycle === 'Proposed') await world.store.update(planted, { action: 'reject' }, ANNA);
    await world.client.delete(packageRevisionKind, { namespace: 'default', name: planted });
    bench.monotonicMs += 30_000;
    await bench.settle();
    expect((await bench.read()).status?.phase).toBe('RolledBack');
    const { files } = await world.store.content('apps.a.rollback-v2');
    expect(files.get('a.yaml')?.toString()).toBe('a: a\n');
  },
);

/** A target that has delivered these revisions of packages, or delivers them now. */
async function delivery(name: string, record: 'history' | 'present', ...packages: readonly [string, number][]) {
  const { client } = world;
  const target = await client.create(deliveryTargetKind, {
    metadata: { name },
    spec: { selector: { packages: packages.map(([path]) => path) }, git: { repo: 'file:///target.git' } },
  });
  const time = '2030-01-01T00:00:00Z';
  const of = ([path, revision]: readonly [string, number]) => ({ repository: 'apps', package: path, revision });
  const changes = packages.map((one) => ({ ...of(one), deliveredAt: time }));
  const history = { commit: '', observedFrom: time, completeFrom: time, changes };
  if (record === 'history') await client.updateStatus(deliveryTargetKind, { ...target, status: { history } });
  else
    for (const one of packages)
      await client.create(
        packageDeliveryKind,
        packageDeliveryOf(target, { ...of(one), commit: 'c', tree: 't' }, one[0], time),
      );
}

test.each([
  ['present', 1],
  ['history', undefined],
] as const)('a rollback goes back to what was delivered before: %s', async (record, previous) => {
  await bench.propose('a', 'b');
  for (const name of ['a', 'b']) {
    await world.store.update(`apps.${name}.w1`, { action: 'approve' }, { ...ANNA, actor: { name: 'berta' } });
    await bench.proposeNext(name);
    // The second revision is published, and never delivered.
    await proposeThird(name);
  }
  await delivery('edge', record, ['a', 1]);
  await bench.plan({ ...TWO, waves: [{ name: 'all', percent: 100 }] });
  await bench.settle();
  expect((await bench.targets()).map((target) => target.record?.previous)).toEqual([previous, undefined]);
  await bench.change({ rollback: true });
  await bench.settle();
  expect((await bench.read()).status?.phase).toBe('RolledBack');
  const textOf = async (name: string) => (await world.store.content(name)).files.get('a.yaml')?.toString();
  expect(await textOf('apps.a.rollback-v3')).toBe('a: a\n');
  // Nothing is recorded of the other one.
  expect(await textOf('apps.b.rollback-v3')).toBe('a: changed\n');
  expect(await world.events('web')).toContain(
    'DeliveryUnknown: no delivery of an earlier revision is recorded, so the highest one that did not fail on a target is published again: apps/b to v2',
  );
});
