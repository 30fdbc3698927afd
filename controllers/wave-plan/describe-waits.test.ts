import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { INITIAL_STATE, type PlanState, type TargetRecord } from '../../src/rollout/wave/plan-state.ts';
import { fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, waveBench } from '../../test/support/wave-bench.ts';
import { describePlan } from './describe-plan.ts';
import { commandsOf, requestText, verificationText } from './describe-waits.ts';
import { waveExplainer } from './explain-wave.ts';
import { planMessage } from './plan-message.ts';

const SURROUNDINGS = { resolvers: [], disabled: [], running: true, now: 0, actor: 'anna' };
const WAVES = [
  { name: 'one', count: 1 },
  { name: 'all', percent: 100, approval: { manual: true } },
];
const WAVE = { startedMs: 0, analysis: 1, targets: 1, verified: 0, failed: 0 };
const RUNNING = { phase: 'Running', waves: [{ name: 'one', ...WAVE }], elapsedMs: 0 };

function planOf(spec: object, status: object, metadata: object = {}): WavePlan {
  const plan = wavePlanKind.complete({
    metadata: { name: 'web', namespace: 'default' },
    spec: { waves: WAVES, ...spec } as never,
  });
  return { ...plan, metadata: { ...plan.metadata, ...metadata }, status: { pauses: 0, joins: 0, ...status } as never };
}

test('a plan in progress says what verifies its targets, which of them wait, and until when; so does its revision', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  await bench.propose('a');
  await bench.plan({ waves: [{ name: 'one', count: 1 }], progressDeadline: '10m', ...BY_CONDITION });
  await bench.settle();
  bench.monotonicMs += 60_000;
  await bench.settle();
  const how =
    'a target is verified once the condition example.com/Ok of its WaveTarget is True, which an external program sets; it has 10m from its approval (spec.progressDeadline)';
  const { reasons, next } = describePlan(await bench.read(), await bench.targets(), [], true);
  expect(reasons).toContain(how);
  expect(reasons.at(-1)).toMatch(
    /^apps\/a in wave one is Approved since \S+Z: the condition example.com\/Ok is not set; it has 9m more of the time of the plan$/,
  );
  expect(next).toEqual(['apps.a.w1']);
  const evaluation = await world.store.evaluate('default/apps.a.w1');
  const explained = () => waveExplainer(world).explain({ evaluation } as never, SURROUNDINGS);
  expect(await explained()).toMatchObject({
    reasons: [
      {
        reason: 'WaveTarget',
        message: `it is in wave one of WavePlan web, which has it as Approved; the condition example.com/Ok is not set; ${how}; it has 9m more of the time of the plan`,
      },
    ],
    next: ['sluice wave get web'],
  });
  await bench.verify();
  await bench.settle();
  expect(await explained()).toEqual({ reasons: [], next: [] });
});

test('the last answer of a probe is shown before the deadline, and with the address of the target', async () => {
  await using world = await fixture(new ManualClock());
  let status = 500;
  const bench = await waveBench(world, {
    probe: async () => {
      if (status === 0) throw new Error('connect ECONNREFUSED');
      return status;
    },
  });
  await bench.propose('a');
  const http = { url: 'http://x.example/health/{package}?token=t', interval: '30s' };
  await bench.plan({ waves: [{ name: 'one', count: 1 }], progressDeadline: '10m', verification: { http } });
  /** Probes are answered beside the reconciliations. */
  const recorded = async () => {
    await bench.settle();
    return (await bench.targets())[0]?.record;
  };
  const address = 'http://x.example/health/a';
  const failing = `${address} responded with status 500`;
  await expect.poll(recorded).toMatchObject({ phase: 'Approved', reason: failing });
  const [target] = await bench.targets();
  expect((await bench.read()).status?.message).toBe(
    `wave one: 0 of 1 targets verified; 1 not verified, such as apps/a: ${failing}`,
  );
  const evaluation = await world.store.evaluate('default/apps.a.w1');
  const { reasons = [] } = await waveExplainer(world).explain({ evaluation } as never, SURROUNDINGS);
  expect(reasons[0]?.message).toContain(`which has it as Approved; ${failing}; a target is verified once`);
  // Another answer replaces it; the deadline runs on, and the log is not filled by answers.
  status = 0;
  bench.monotonicMs += 60_000;
  await expect.poll(recorded).toMatchObject({
    reason: `cannot probe ${address}: connect ECONNREFUSED`,
    sinceMs: target?.record?.sinceMs,
    log: target?.record?.log,
  });
  status = 200;
  bench.monotonicMs += 60_000;
  await expect.poll(async () => (await recorded())?.phase).toBe('Verified');
  expect((await recorded())?.reason).toBeUndefined();
});

test('probes that do not respond delay no request of a user', async () => {
  await using world = await fixture(new ManualClock());
  let requests = 0;
  const probe = () => {
    requests += 1;
    return new Promise<never>(() => undefined);
  };
  const bench = await waveBench(world, { probe });
  await bench.propose('a', 'b');
  const http = { url: 'http://x.example/{package}', interval: '30s' };
  await bench.plan({ waves: [{ name: 'all', percent: 100 }], verification: { http } });
  await bench.settle();
  // Observed again, now that they are published.
  await bench.settle();
  expect(requests).toBe(2);
  expect(await bench.phases()).toEqual(['a Approved', 'b Approved']);
  const phase = async (change: object) => {
    await bench.change(change);
    await bench.settle();
    return (await bench.read()).status?.phase;
  };
  expect(await phase({ paused: true })).toBe('Paused');
  expect(await phase({ paused: false })).toBe('Running');
  expect(await phase({ abort: true })).toBe('Aborted');
  expect(requests).toBe(2);
});

test('a template that does not exist is reported once, by the analysis that waits for it', () => {
  const waves = [{ name: 'one', percent: 100, analysis: [{ template: 'errors' }] }];
  const record = { id: 'apps/a', order: { joined: 0, key: 'a' }, revision: 'apps.a.w1', commit: 'c', attempt: 1 };
  const target: TargetRecord = { ...record, wave: 'one', phase: 'Verified', published: 1, sinceMs: 0 };
  const state: PlanState = {
    ...{ ...INITIAL_STATE, phase: 'Running' },
    waves: [{ name: 'one', startedMs: 0, analysis: 1, verifiedMs: 0 }],
    targets: new Map([[target.id, target]]),
  };
  const about = { unread: undefined, freezes: [], missingTemplates: ['errors'] };
  const missing = { phase: 'Pending', message: 'AnalysisTemplate errors does not exist; create it' } as const;
  expect(planMessage(planOf({ waves }, RUNNING), state, { ...about, analysisOf: () => missing })).toBe(
    'wave one: 1 of 1 targets verified; analysis 1 is Pending: AnalysisTemplate errors does not exist; create it',
  );
  expect(planMessage(planOf({ waves }, RUNNING), state, { ...about, analysisOf: () => undefined })).toMatch(
    /AnalysisTemplate errors does not exist, which a wave needs: create it$/,
  );
});

test('verification by engines and by a probe is named', () => {
  expect(verificationText(planOf({}, RUNNING))).toContain(
    'each DeliveryTarget that selects it has delivered it, and its engine reports it as synced and healthy; it has 45m from its approval',
  );
  const http = { url: 'https://{name}.example.com/', interval: '5s' };
  expect(verificationText(planOf({ verification: { http } }, RUNNING))).toContain(
    'https://{name}.example.com/ answers a GET request with success, every 5s',
  );
});

test.each<[string, object, object, string | undefined]>([
  ['nothing', {}, RUNNING, undefined],
  ['an abort', { abort: true, paused: true }, RUNNING, 'abort'],
  ['an abort that is carried out', { abort: true }, { ...RUNNING, phase: 'Aborted' }, undefined],
  ['a rollback', { rollback: true }, RUNNING, 'rollback'],
  ['a rollback in progress', { rollback: true }, { ...RUNNING, phase: 'RollingBack' }, undefined],
  ['a pause', { paused: true }, RUNNING, 'pause'],
  ['the end of a pause', {}, { ...RUNNING, phase: 'Paused', pause: { cause: 'Requested', message: '' } }, 'resume'],
  [
    'the end of a failure',
    { resume: 1 },
    { ...RUNNING, phase: 'Paused', pauses: 1, pause: { cause: 'MaxFailures', message: '' } },
    'resume',
  ],
  [
    'a failure that no user has accepted',
    {},
    { ...RUNNING, phase: 'Paused', pauses: 1, pause: { cause: 'MaxFailures', message: '' } },
    undefined,
  ],
  ['a wave that is passed', { promotePast: 'one' }, RUNNING, 'promote past wave one'],
  [
    'a wave that was passed',
    { promotePast: 'one' },
    { ...RUNNING, waves: [{ name: 'one', ...WAVE, completedMs: 1 }] },
    undefined,
  ],
])('a request that is not carried out yet is shown: %s', (_, spec, status, wanted) => {
  const text = (isServed: boolean) => requestText(planOf(spec, status), isServed);
  expect(text(false)).toBe(wanted && `requested: ${wanted}, which takes effect once "sluice up" runs`);
  expect(text(true)).toBe(wanted && `requested: ${wanted}, which takes effect in a moment`);
});

test('the next step is what ends the wait: of a freeze, a pause, an approval, or a deleted plan', () => {
  expect(commandsOf(planOf({}, RUNNING))).toEqual([]);
  const freezes = [
    { namespace: 'default', name: 'core', reason: 'r' },
    { namespace: 'sluice-system', name: 'all', reason: 'r' },
  ];
  expect(commandsOf(planOf({}, { ...RUNNING, freezes }))).toEqual([
    'sluice freeze end core',
    'sluice freeze end all --all-namespaces',
  ]);
  expect(commandsOf(planOf({}, { ...RUNNING, phase: 'Paused' }))).toEqual([
    ...['sluice wave resume web', 'sluice wave abort web', 'sluice wave rollback web'],
  ]);
  const isDone = { ...RUNNING, waves: [{ name: 'one', ...WAVE, completedMs: 1 }] };
  expect(commandsOf(planOf({}, isDone))).toEqual(['sluice wave approve web --wave all']);
  const deleted = planOf({}, RUNNING, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect(commandsOf(deleted)).toEqual(['sluice wave abort web']);
  expect(describePlan(deleted as never, [], [], true).state).toBe('Deleting');
});
