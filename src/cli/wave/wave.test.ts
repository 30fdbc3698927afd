import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { type Condition, type NewCondition, setCondition } from '../../resource/object/condition.ts';
import { completeNames } from '../completion/complete-names.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

const KEY = { namespace: 'default', name: 'web' };
const WAVES = [
  { name: 'canary', percent: 1 },
  { name: 'rest', percent: 100, approval: { required: 2, from: ['anna', 'ben'] } },
];
const RUNNING = {
  ...{ phase: 'Running', wave: 'canary', message: 'wave canary: 0 of 1 targets verified', pauses: 1 },
  waves: [
    { name: 'canary', startedMs: 0, analysis: 1, targets: 1, verified: 0, failed: 0, message: '0 of 1 verified' },
  ],
} as const;

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'get');
  await withPlan(async (client) => {
    await client.create(wavePlanKind, { metadata: KEY, spec: { waves: WAVES } });
  });
  await report(RUNNING);
});
afterEach(() => cli[Symbol.asyncDispose]());

async function withPlan<T>(action: (client: ReturnType<ObjectSet['client']>) => Promise<T>): Promise<T> {
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  try {
    return await action(objects.client({ name: 'sluice' }));
  } finally {
    await objects.close();
  }
}

/** Writes the status that the controller would write. */
async function report(
  given: { readonly phase: string; readonly [field: string]: unknown },
  more: readonly NewCondition[] = [],
): Promise<void> {
  const ready = { type: 'Ready', status: 'False', reason: given.phase, message: '' } as const;
  const conditions = [ready, ...more].reduce<readonly Condition[]>(
    (all, one) => setCondition(all, { ...one, observedGeneration: 1 }, Date.now()),
    [],
  );
  const status = { ...given, conditions };
  await withPlan(async (client) => {
    const plan = await client.get(wavePlanKind, KEY);
    await client.updateStatus(wavePlanKind, { ...plan, status: status as never });
  });
}

const spec = () => withPlan(async (client) => (await client.get(wavePlanKind, KEY)).spec);

test('get shows a plan, its waves and what it waits for', async () => {
  const { stdout } = await cli.run('wave', 'get', 'web');
  expect(stdout).toMatch(/^web +Running +canary/m);
  expect(stdout).toMatch(/^canary +1% +InProgress +1 +0 +0 +0 of 1 verified$/m);
  expect(stdout).toMatch(/^rest +100% +Waiting +requires 2 approvals by anna, ben$/m);
  expect(stdout).toContain('\nwave canary: 0 of 1 targets verified\n');
  expect(JSON.parse((await cli.run('wave', 'get', 'web', '-o', 'json')).stdout)).toMatchObject({ kind: 'WavePlan' });
  const missing = await cli.run('wave', 'get', 'wep');
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('did you mean web?') });
  expect(await completeNames('plans', 'w', [], { SLUICE_DATA: cli.data })).toEqual(['web']);
  const waves = (...line: string[]) => completeNames('waves', '', ['wave', ...line], { SLUICE_DATA: cli.data });
  expect(await waves('promote', 'web', '--past')).toEqual(['canary', 'rest']);
  expect(await waves('approve', '--reason', 'it is fine', 'web', '--wave', '')).toEqual(['canary', 'rest']);
  expect(await waves('promote', 'wep', '--past')).toEqual([]);
  expect(await waves('promote', '-n', 'web', '--past')).toEqual([]);
});

test('a wave with failures that the plan permits is not shown as verified', async () => {
  const [canary] = RUNNING.waves;
  const results = async (times: object) => {
    await report({
      ...RUNNING,
      waves: [{ ...canary, ...times, failed: 1, message: '1 failed, such as edge/web: down' }],
    });
    return (await cli.run('wave', 'get', 'web')).stdout;
  };
  expect(await results({ verifiedMs: 5 })).toMatch(
    /^canary +1% +HasFailures +1 +0 +1 +1 failed, such as edge\/web: down$/m,
  );
  expect(await results({ verifiedMs: 5, completedMs: 6 })).toMatch(/^canary +1% +CompletedWithFailures +1 +0 +1 /m);
});

test('get shows no wave of a plan that has ended as one in progress', async () => {
  await report({ ...RUNNING, phase: 'Aborted', message: 'a user aborted it' });
  const { stdout } = await cli.run('wave', 'get', 'web');
  expect(stdout).toMatch(/^canary +1% +Ended +1 +0 +0 *$/m);
  expect(stdout).toMatch(/^rest +100% +Ended *$/m);
});

test('get shows a request that no server carries out, what verifies targets, and the next step', async () => {
  await cli.run('wave', 'promote', 'web');
  const { stdout } = await cli.run('wave', 'get', 'web');
  expect(stdout).toContain('\nrequested: promote past wave canary, which takes effect once "sluice up" runs\n');
  expect(stdout).toContain(
    '\na target is verified once each DeliveryTarget that selects it has delivered it, and its engine reports it',
  );
  expect(stdout).not.toContain('\nNext:');
  const { stdout: why } = await cli.run('why', 'waveplan/web');
  expect(why).toContain('  - requested: promote past wave canary, which takes effect once "sluice up" runs\n');
  await report({ ...RUNNING, phase: 'Paused', pause: { cause: 'MaxFailures', message: 'two' } });
  expect((await cli.run('wave', 'get', 'web')).stdout).toContain(
    '\nNext:\n  sluice wave resume web\n  sluice wave abort web\n',
  );
});

test('steps are fields of the plan', async () => {
  await cli.run('wave', 'pause', 'web');
  expect(await spec()).toMatchObject({ paused: true, pausedBy: 'anna' });
  expect((await cli.run('wave', 'pause', 'web')).stdout).toBe(
    'web is paused already; continue it with "sluice wave resume web"\n',
  );
  const { stdout } = await cli.run('wave', 'resume', 'web');
  expect(stdout).toBe('web continues once "sluice up" runs\n');
  expect(await spec()).toMatchObject({ paused: false, resume: 1 });
  expect(await spec()).not.toHaveProperty('pausedBy');
  expect((await cli.run('wave', 'resume', 'web')).stdout).toBe('web is not paused\n');
  await report({ ...RUNNING, phase: 'Paused', pause: { cause: 'MaxFailures', message: 'two' } });
  expect((await cli.run('wave', 'resume', 'web')).stdout).toBe('web was requested to continue already\n');
  await report(RUNNING);
  await cli.run('wave', 'promote', 'web');
  expect(await spec()).toMatchObject({ promotePast: 'canary' });
  expect((await cli.run('wave', 'promote', 'web')).stdout).toBe(
    'web was requested already not to wait for wave canary\n',
  );
  expect((await cli.run('wave', 'promote', 'web', '--past', 'none')).stderr).toContain('its waves are canary, rest');
  await cli.run('wave', 'rollback', 'web');
  expect(await spec()).toMatchObject({ rollback: true });
  expect((await cli.run('wave', 'rollback', 'web')).stdout).toMatch(/^web was requested to be rolled back already; /);
  await report({ ...RUNNING, phase: 'Completed' });
  expect(await cli.run('wave', 'promote', 'web', '--past', 'none')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('cannot promote web: it has no wave "none"; its waves are canary, rest'),
  });
  expect((await cli.run('wave', 'promote', 'web', '--past', 'rest')).stderr).toContain('it is Completed');
  await report({ ...RUNNING, phase: 'Aborted' });
  expect(await cli.run('wave', 'resume', 'web')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('cannot resume web: it is Aborted; create another WavePlan'),
  });
});

test('of several plans those that there are are shown, and then which are missing', async () => {
  const { code, stdout, stderr } = await cli.run('wave', 'get', 'web', 'wbe', 'other');
  expect(stdout).toMatch(/^web +Running/m);
  expect(stderr).toContain('there is no wave plan "wbe" in namespace default; did you mean web?\n');
  expect(stderr).toContain('there is no wave plan "other"');
  expect(code).toBe(1);
});

test('a plan that nothing verifies is passed by its next command, until that is requested', async () => {
  const Verifiable = { type: 'Verifiable', status: 'False', reason: 'NoReader', message: 'nothing reports' } as const;
  await report(RUNNING, [Verifiable]);
  expect((await cli.run('wave', 'get', 'web')).stdout).toContain('\nNext:\n  sluice wave promote web\n');
  await cli.run('wave', 'promote', 'web');
  expect((await cli.run('wave', 'get', 'web')).stdout).not.toContain('\nNext:');
});

test('a promotion that is over is none of a wave that was inserted since, and a removed wave is promoted by its name', async () => {
  const [canary] = RUNNING.waves;
  const promote = async (...waves: readonly string[]) => {
    await withPlan(async (client) => {
      const plan = await client.get(wavePlanKind, KEY);
      const names = waves.map((name) => ({ name, count: 1, soak: '0s', analysis: [] }));
      await client.update(wavePlanKind, { ...plan, spec: { ...plan.spec, waves: names, promotePast: 'canary' } });
    });
    return (await cli.run('wave', 'promote', 'web')).stdout;
  };
  await report({
    ...RUNNING,
    wave: 'mid',
    waves: [
      { ...canary, completedMs: 1 },
      { ...canary, name: 'mid' },
    ],
  });
  expect(await promote('mid', 'canary')).toBe('web does not wait for wave mid any more once "sluice up" runs\n');
  expect(await spec()).toMatchObject({ promotePast: 'mid' });
  const pause = { cause: 'WaveRemoved', message: 'wave mid is in progress' };
  await report({ ...RUNNING, phase: 'Paused', pause, waves: [{ ...canary, name: 'mid' }] });
  expect(await promote('other')).toBe('web does not wait for wave mid any more once "sluice up" runs\n');
  expect((await cli.run('wave', 'promote', 'web')).stdout).toBe('web was requested already not to wait for wave mid\n');
});

test('a plan that is being deleted is promoted by no user', async () => {
  await withPlan(async (client) => {
    const plan = await client.get(wavePlanKind, KEY);
    await client.update(wavePlanKind, {
      ...plan,
      metadata: { ...plan.metadata, finalizers: ['sluice.dev/wave-plan'] },
    });
    await client.delete(wavePlanKind, KEY);
  });
  expect(await cli.run('wave', 'promote', 'web')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it is being deleted, and approves nothing any more; "sluice wave abort web" ends'),
  });
  expect((await cli.run('wave', 'abort', 'web')).code).toBe(0);
});

test('approve counts each user once, and only those whom the wave counts', async () => {
  expect((await cli.run('wave', 'approve', 'web')).stdout).toBe('anna approved wave rest of web: 1 of 2 approvals\n');
  expect((await cli.run('wave', 'approve', 'web')).stdout).toBe('anna has approved wave rest of web already\n');
  expect(await cli.run('wave', 'approve', 'web', '--as', 'mallory')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      'it counts approvals by anna, ben, and you are mallory; let one of them approve, or a user who may change the plan',
    ),
  });
  await cli.run('wave', 'approve', 'web', '--as', 'ben', '--reason', 'fine');
  expect((await spec()).approvals).toEqual([
    { wave: 'rest', user: 'anna' },
    { wave: 'rest', user: 'ben', reason: 'fine' },
  ]);
});

test('get and watch name the freeze that stops a plan, and until when', async () => {
  await cli.run('freeze', '--reason', 'core repair', '--name', 'core', '--until', '2030-01-01T00:00:00Z');
  const freeze = { namespace: 'default', name: 'core', reason: 'core repair', until: '2030-01-01T00:00:00Z' };
  await report({ ...RUNNING, freezes: [freeze] });
  const { stdout, stderr } = await cli.run('wave', 'get', 'web');
  expect(stdout).toMatch(/^NAME +PHASE +FROZEN +WAVE/);
  expect(stdout).toMatch(/^web +Running +core +canary/m);
  const banner = /^FROZEN: .*Freeze default\/core .* until 2030-01-01T00:00:00Z \(core repair\)$/m;
  expect(stderr).toMatch(banner);
  expect((await cli.run('wave', 'pause', 'web')).stderr).toMatch(banner);
  await report({ ...RUNNING, freezes: [freeze], phase: 'Aborted' });
  const watch = await cli.run('wave', 'watch', 'web', '--timeout', '10s');
  expect(watch.stderr).toMatch(banner);
  expect(watch.stdout).toContain('Frozen: Freeze default/core until 2030-01-01T00:00:00Z (core repair)\n');
});

test('watch prints a line for each wave and ends with the plan', async () => {
  await report({ ...RUNNING, phase: 'Paused', pause: { cause: 'MaxFailures', message: 'two' }, message: 'stopped' });
  const stopped = await cli.run('wave', 'watch', 'web', '--timeout', '10s');
  expect(stopped.code).toBe(1);
  expect(stopped.stdout.replace(/^\S+ {2}/gm, '')).toBe(
    'canary (1%): InProgress, 0 of 1 verified, 0 failed: 0 of 1 verified\nrest (100%): Waiting: requires 2 approvals by anna, ben\nPaused: stopped\n',
  );
  await report({ ...RUNNING, phase: 'Completed' });
  expect((await cli.run('wave', 'watch', 'web', '-o', 'json')).code).toBe(0);
});

test('what a plan does not carry out any more is refused, with what holds it and the next step', async () => {
  expect((await cli.run('wave', 'rollback', 'web')).code).toBe(0);
  for (const words of [['resume'], ['pause'], ['promote', '--past', 'canary'], ['approve']]) {
    const [verb = '', ...options] = words;
    expect(await cli.run('wave', verb, 'web', ...options)).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringContaining(
        `cannot ${verb} web: a user requested its rollback, which ends it once "sluice up" runs: start it; create another WavePlan`,
      ),
    });
  }
  expect((await cli.run('wave', 'abort', 'web')).code).toBe(0);
  const { approvals, paused, promotePast } = await spec();
  expect({ approvals, paused, promotePast }).toEqual({ approvals: [], paused: false, promotePast: undefined });
  expect(await cli.run('wave', 'rollback', 'web')).toMatchObject({
    ...{ code: 1, stderr: expect.stringContaining('cannot rollback web: a user requested its abort') },
  });
  await report({ ...RUNNING, phase: 'Completed' });
  expect((await cli.run('wave', 'approve', 'web')).stderr).toContain('cannot approve web: it is Completed');
});

test('completion of options knows that their values are waves', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await cli.run('completion', shell);
    expect(stdout).toMatch(/wave promote.*past.*\bwaves\b/);
    expect(stdout).toMatch(/wave approve.*wave.*\bwaves\b/);
    expect(stdout).not.toMatch(/target init.*\bwaves\b/);
  }
});
