import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { APPROVAL_POLICY_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import {
  BY_CONDITION,
  PACKAGES,
  type Plan,
  startPlan,
  TWO,
  type WaveBench,
  waveBench,
} from '../../test/support/wave-bench.ts';
import { approvalController } from '../approval/approval-controller.ts';

let world: Fixture;
let bench: WaveBench;

beforeEach(async () => {
  world = await fixture(new ManualClock());
  bench = await waveBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

const start = (...plan: Plan) => startPlan(bench, ...plan);

test('a wave is approved, verified and followed by the next; the plan records who and what', async () => {
  await start();
  expect(bench.published()).toHaveLength(1);
  const [first = ''] = bench.published();
  const row = world.store
    .list({ repository: 'apps', package: first.slice(0, 1) })
    .find(({ revision }) => revision === 1);
  expect(row?.tip.facts).toMatchObject({ actor: 'controller:wave-plan', face: 'controller' });
  expect(row?.outOfBand).toBeUndefined();
  expect((await bench.read()).status).toMatchObject({
    phase: 'Running',
    message: 'wave canary: 0 of 1 targets verified',
    targets: { total: 4, approved: 1, verified: 0, failed: 0, unreachable: 0, skipped: 0 },
    waves: [{ name: 'canary', targets: 1 }],
  });
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
  await bench.verify();
  expect(await bench.settle()).toBeUndefined();
  const { status } = await bench.read();
  expect(status).toMatchObject({ phase: 'Completed', message: 'every wave is completed' });
  expect(status?.log?.map(({ transition, wave }) => [transition, wave].filter(Boolean).join(' '))).toEqual([
    ...['Started', 'WaveStarted canary', 'WaveVerified canary', 'WaveAnalysed canary', 'WaveCompleted canary'],
    ...['WaveStarted all', 'WaveVerified all', 'WaveAnalysed all', 'WaveCompleted all', 'Completed'],
  ]);
  const [target] = await bench.targets();
  expect(target?.record?.log.map(({ transition }) => transition)).toEqual([
    ...['Joined', 'Assigned', 'Approving', 'Approved', 'Verified'],
  ]);
  expect(await world.events('web')).toEqual([
    'WaveStarted: wave canary has started with 1 targets',
    'WaveCompleted: wave canary is completed',
    'WaveStarted: wave all has started with 3 targets',
    'WaveCompleted: wave all is completed',
    'Completed: every wave is completed',
  ]);
});

test('the approvals of a wave in one repository are one commit on its main branch, and each names the wave', async () => {
  const { path } = world.store.repository('apps').git;
  const commits = () => Number(git(path, ['rev-list', '--first-parent', '--count', 'main']));
  const packages = Array.from({ length: 20 }, (_, number) => `p${number}`);
  await bench.propose(...packages);
  const before = commits();
  await bench.plan({ waves: [{ name: 'all', percent: 100 }], ...BY_CONDITION });
  await bench.settle();
  expect(bench.published()).toHaveLength(20);
  expect(commits() - before).toBe(1);
  expect(git(path, ['log', '-1', '--format=%s%n%(trailers:key=Sluice-Reason)', 'main'])).toBe(
    'Approving 20 package revisions\nSluice-Reason: wave all of WavePlan web',
  );
  for (const { outOfBand, tip } of world.store.list({ repository: 'apps' })) {
    expect(outOfBand).toBeUndefined();
    if (tip.facts.statement !== undefined)
      expect(tip.facts.statement.statement.record.steps.at(-1)).toMatchObject({
        ...{ action: 'approve', by: 'controller:wave-plan', reason: 'wave all of WavePlan web' },
      });
  }
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Completed' });
});

test('a plan that is over is read alone, once that is recorded, until a user changes it', async () => {
  const lists: string[] = [];
  const counting = <T extends object>(client: T): T =>
    new Proxy(client, {
      get: (of, name) => {
        const value = Reflect.get(of, name);
        if (typeof value !== 'function') return value;
        return (...args: [{ readonly kind?: string }]) => {
          if (name === 'list') lists.push(args[0].kind ?? '');
          const result = value.apply(of, args);
          return name === 'as' ? counting(result) : result;
        };
      },
    });
  await world[Symbol.asyncDispose]();
  world = await fixture(new ManualClock());
  bench = await waveBench(world, { client: counting(world.client) });
  const one = { waves: [{ name: 'all', percent: 100 }], ...BY_CONDITION };
  await start(one, ['a', 'b']);
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Completed' });
  lists.length = 0;
  expect(await bench.settle()).toBeUndefined();
  expect(lists).toEqual([]);
  await bench.change({ rollback: true });
  await bench.settle();
  expect((await bench.read()).status?.phase).not.toBe('Completed');
});

test('the order is a salted digest: the same for another plan with the salt, and that of a label where one is named', async () => {
  await start({ ...TWO, order: { salt: 'x' }, paused: true });
  const keys = async () => (await bench.targets()).map(({ record }) => record?.order.key);
  const first = await keys();
  expect(new Set(first).size).toBe(4);
  await bench.plan({ ...TWO, order: { salt: 'x' }, paused: true }, 'other');
  await bench.settle('other');
  expect((await bench.targets('other')).map(({ record }) => record?.order.key)).toEqual(first);
});

test('a soak counts only time that the plan was observed in: a jump of the wall clock ends none', async () => {
  await start({
    ...TWO,
    waves: [
      { name: 'canary', count: 1, soak: '90s' },
      { name: 'all', percent: 100 },
    ],
  });
  await bench.verify();
  expect(await bench.settle()).toBe(30_000);
  (world.clock as ManualClock).advance(10 * 3_600_000);
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  // A gap counts a minute at most.
  bench.monotonicMs += 3_600_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  expect((await bench.read()).status?.elapsedMs).toBe(60_000);
  bench.monotonicMs += 30_000;
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
});

test('a failure pauses the plan; a user who resumes it accepts the failure', async () => {
  await start();
  await bench.verify(undefined, 'False');
  await bench.settle();
  const { status } = await bench.read();
  expect(status).toMatchObject({ phase: 'Paused', pauses: 1, pause: { cause: 'MaxFailures' } });
  expect(status?.message).toContain(
    '1 targets have failed, and maxFailures permits 0 (since 2026-01-01T00:00:00Z); continue with "sluice wave resume web", or end it with "sluice wave abort web"',
  );
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  await bench.change({ resume: 1 });
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
});

test('what is not verified in time has failed', async () => {
  await start({ ...TWO, progressDeadline: '1m' });
  for (let minute = 0; minute < 2; minute += 1) {
    bench.monotonicMs += 30_000;
    await bench.settle();
  }
  const { status } = await bench.read();
  expect(status?.pause?.cause).toBe('MaxFailures');
  const failed = (await bench.targets()).find(({ record }) => record?.phase === 'Failed');
  expect(failed?.record?.reason).toBe(
    'it was not verified within the deadline: the condition example.com/Ok is not set',
  );
});

test('a closed gate is no failure: the target waits, the others go on, and the policy may go', async () => {
  await bench.propose(...PACKAGES);
  // A gate from before the proposal would stay with it.
  const gate = { conditionType: 'example.com/Reviewed', approveOnly: true };
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'reviewed' },
    spec: { selector: { packages: ['b'] }, requiredGates: [gate] },
  });
  await expect.poll(() => world.policyFor(world.store.get('apps.b.w1')).requiredGates).toHaveLength(1);
  await start({ ...TWO, waves: [{ name: 'all', percent: 100 }], progressDeadline: '30s' }, []);
  expect((await bench.phases()).join()).toBe('a Approved,b Approving,c Approved,d Approved');
  await bench.verify();
  bench.monotonicMs += 45_000;
  await bench.settle();
  const { status } = await bench.read();
  expect(status?.message).toMatch(
    /^wave all: 3 of 4 targets verified; 1 wait for approval, such as apps\/b: .*example.com\/Reviewed/,
  );
  expect(status?.phase).toBe('Running');
  // Deleted during the wave.
  await world.client.delete(packagePolicyKind, { name: 'reviewed' });
  await expect
    .poll(async () => {
      bench.monotonicMs += 15_000;
      await bench.settle();
      return bench.published().length;
    })
    .toBe(4);
});

test('pause, abort: nothing more is approved', async () => {
  await start();
  await bench.change({ paused: true });
  await bench.verify();
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  expect((await bench.read()).status?.phase).toBe('Paused');
  await bench.change({ abort: true });
  await bench.settle();
  await bench.change({ abort: false, paused: false, resume: 9 });
  await bench.settle();
  expect((await bench.read()).status).toMatchObject({ phase: 'Aborted' });
  expect(bench.published()).toHaveLength(1);
});

test('promotePast passes a wave without its results', async () => {
  await start();
  await bench.change({ promotePast: 'canary' });
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
  await bench.change({ promotePast: 'all' });
  await bench.settle();
  const message = 'every wave is completed; 0 of 4 targets verified';
  expect((await bench.read()).status).toMatchObject({ phase: 'Completed', message });
  expect((await world.events('web')).at(-1)).toBe(`Completed: ${message}`);
});

test('a wave waits for approvals of distinct users from the list', async () => {
  const approval = { required: 2, from: ['group:sre', 'carla'] };
  await start({
    ...TWO,
    waves: [
      { name: 'canary', count: 1 },
      { name: 'all', percent: 100, approval },
    ],
  });
  await bench.verify();
  await bench.settle();
  expect((await bench.read()).status?.message).toBe(
    'wave all waits for 2 of 2 approvals by group:sre, carla: "sluice wave approve web --wave all"',
  );
  const given = (user: string, ...groups: string[]) => ({ wave: 'all', user, groups });
  await bench.change({ approvals: [given('anna'), given('dora', 'sre'), given('dora', 'sre')] });
  await bench.settle();
  expect(bench.published()).toHaveLength(1);
  await bench.change({ approvals: [given('dora', 'sre'), given('carla')] });
  await bench.settle();
  expect(bench.published()).toHaveLength(4);
});

test('no other controller approves ahead of the wave what an active plan selects', async () => {
  await start();
  const { client, store, clock } = world;
  const recorder = world.recorder('controller:approval');
  const controller = approvalController({ client, store, clock, recorder });
  const waiting = (await bench.targets()).find(({ record }) => record?.phase === 'Pending');
  const name = `apps.${waiting?.spec.package}.w1`;
  await store.change(name, { metadata: { annotations: { [APPROVAL_POLICY_ANNOTATION]: 'always' } } }, ANNA);
  const approve = () =>
    controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
  await approve();
  expect(store.get(name).lifecycle).toBe('Proposed');
  expect(await world.events(name)).toEqual([
    expect.stringMatching(
      /^ApprovalBlocked: WavePlan web holds it, and approves what it selects in its waves; blocked since /,
    ),
  ]);
  await bench.change({ abort: true });
  await approve();
  expect(store.get(name).lifecycle).toBe('Published');
});
