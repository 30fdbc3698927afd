import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { externalFunctions } from '../external/external-functions.ts';
import type { ExternalRunner } from '../external/external-runner.ts';
import { programFolder } from '../external/testing-programs.ts';
import { gone, HOSTILE_WORKER, image, never, open, packageWith, until } from './testing-runner.ts';

test.each([
  ['never-ends', 'did not end within 0.5 s and was stopped'],
  ['never-settles', 'did not end within 0.5 s and was stopped'],
  ['exits', 'ended its process with exit code 7'],
  ['kills-itself', 'ended its process by SIGSEGV'],
  ['fails-behind-our-back', 'ended its process with exit code 1 (Error: too late)'],
])('a function that takes its worker along is a failed step, and the next package renders: %s', async (name, why) => {
  const runner = open({ time: 500 });
  const outcome = await runner.run(packageWith('fine', name, 'fine'), never());
  expect(outcome).toMatchObject({
    failure: `Kptfile: pipeline.mutators[1], function "${image(name)}": it ${why}`,
    steps: [
      { result: { image: image('fine'), exitCode: 0 } },
      { packagePath: '', list: 'mutators', result: { image: image(name), exitCode: 1, executionError: `it ${why}` } },
    ],
  });
  expect(outcome.edits.size).toBe(0);
  expect(runner.pids).toEqual([]);
  expect((await runner.run(packageWith('fine'), never())).failure).toBeUndefined();
});

// Each of these ends the whole process if it is done in a thread, whatever bound the thread has.
test.each(['many-objects', 'one-huge-array', 'one-huge-map'])('memory has a bound: %s', async (name) => {
  const runner = open();
  const { failure, steps } = await runner.run(packageWith(name), never());
  expect(failure).toBe(
    `Kptfile: pipeline.mutators[0], function "${image(name)}": it needs more than 128 MiB of memory`,
  );
  expect(steps).toMatchObject([{ result: { image: image(name), exitCode: 1 } }]);
});

test('a rendering that hangs does not hold up others', async () => {
  const runner = open({ time: 60_000, concurrency: 1 });
  const controller = new AbortController();
  let hangs = true;
  const hung = runner.run(packageWith('never-ends'), controller.signal).finally(() => {
    hangs = false;
  });
  hung.catch(() => undefined);
  for (let at = 0; at < 4; at += 1) expect((await runner.run(packageWith('fine'), never())).failure).toBeUndefined();
  expect(hangs).toBe(true);
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(hung).rejects.toBe(reason);
});

test('functions outside run in this process, with bounds of their own', async () => {
  await using programs = await programFolder();
  const bounds = { time: 20_000, outputBytes: 1024 * 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
  const external = externalFunctions({
    programs: { allowed: { folder: programs.path }, ...bounds },
    containers: 'start it with --containers',
  });
  await programs.add('slow', 'sleep 1; cat');
  await programs.add('three', 'echo "no good" >&2; exit 3');
  // The bound of functions in the worker is shorter than the program takes.
  const runner = open({ external, time: 500 });
  const outcome = await runner.run(packageWith({ exec: 'slow' }, 'fine', { exec: 'three' }), never());
  expect(outcome.steps.map(({ result }) => [result.exec ?? result.image, result.exitCode])).toEqual([
    ['slow', 0],
    [image('fine'), 0],
    ['three', 3],
  ]);
  const missing = await runner.run(packageWith({ exec: 'missing' }), never());
  expect(missing.failure).toContain('there is no such program');
  const unknown = await runner.run(packageWith('unknown'), never());
  expect(unknown.failure).toContain('containers are not allowed; start it with --containers');
});

test.each(['aborted', 'closed'])('a program that a rendering waits for ends with it: %s', async (how) => {
  await using programs = await programFolder();
  const bounds = { time: 60_000, outputBytes: 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
  const external: ExternalRunner = externalFunctions({
    programs: { allowed: { folder: programs.path }, ...bounds },
    containers: 'start it with --containers',
  });
  await programs.add('waits', `echo $$ > ${programs.path}/pids; exec sleep 1000`);
  const runner = open({ external });
  const controller = new AbortController();
  const running = runner.run(packageWith({ exec: 'waits' }), controller.signal);
  await until(async () => (await programs.pids('pids')).length === 1);
  const pids = [...(await programs.pids('pids')), ...runner.pids];
  if (how === 'closed') {
    const refused = expect(running).rejects.toMatchObject({ code: 'Unavailable' });
    await runner.close();
    expect(await gone(pids)).toBe(true);
    return refused;
  }
  const reason = new Error('no longer wanted');
  controller.abort(reason);
  await expect(running).rejects.toBe(reason);
  expect(await gone(pids)).toBe(true);
});

test('workers end with the process that started them, and do not keep it running', async () => {
  await using programs = await programFolder();
  const script = (then: string) => `
    import { writeFileSync } from 'node:fs';
    const { workerPipelineRunner } = await import(${JSON.stringify(new URL('./worker-pipeline-runner.ts', import.meta.url).href)});
    const runner = workerPipelineRunner({ external: undefined, program: new URL(${JSON.stringify(HOSTILE_WORKER)}) });
    const input = (image) => ({
      files: new Map([['Kptfile', JSON.stringify({ apiVersion: 'kpt.dev/v1', kind: 'Kptfile', metadata: { name: 'x' }, pipeline: { mutators: [{ image }] } })]]),
      rules: [], validatorConditions: new Map(),
    });
    const signal = new AbortController().signal;
    await runner.run(input('fine'), signal);
    writeFileSync(${JSON.stringify(join(programs.path, 'pids'))}, runner.pids.join('\\n'));
    ${then}`;
  const start = (then: string) =>
    spawn(process.execPath, ['--input-type=module', '--eval', script(then)], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: 'inherit',
    });
  const exit = (child: ReturnType<typeof start>) => new Promise((resolve) => child.once('exit', resolve));

  // Not closed: nothing of the runner keeps the process alive.
  expect(await exit(start(''))).toBe(0);
  const idle = await programs.pids('pids');
  expect(idle).toHaveLength(1);
  await until(() => gone(idle));

  // Killed while a function computes without end.
  const sign = join(programs.path, 'started');
  const hung = start(
    `runner.run(input('never-ends'), signal, () => writeFileSync(${JSON.stringify(sign)}, '')); setInterval(() => {}, 1000);`,
  );
  await until(() => existsSync(sign));
  const busy = await programs.pids('pids');
  hung.kill('SIGKILL');
  await exit(hung);
  await until(() => gone(busy));
});

test('a function that fails does not cost the worker', async () => {
  const runner = open();
  await runner.run(packageWith('fine'), never());
  const { pids } = runner;
  for (const [name, why] of [
    ['throws', 'it went wrong'],
    ['rejects', 'it went wrong later'],
    ['throws-nothing', 'undefined'],
    ['recurses', 'Maximum call stack size exceeded'],
    ['buffers', 'Failed to allocate memory'],
    ['writes-a-file', 'Access to this API has been restricted'],
    ['reads-a-file', 'Access to this API has been restricted'],
    ['reads-the-data-folder', 'Access to this API has been restricted'],
    ['imports-a-file', 'Access to this API has been restricted'],
    ['starts-a-process', 'Access to this API has been restricted'],
  ] as const) {
    const outcome = await runner.run(packageWith('fine', name, 'fine'), never());
    expect(outcome.steps, name).toHaveLength(2);
    expect(outcome.steps[1]?.result).toMatchObject({ image: image(name), exitCode: 1 });
    expect(JSON.stringify(outcome.steps[1])).toContain(why);
    expect(outcome.failure).toContain(name);
    expect(runner.pids, name).toEqual(pids);
  }
});

test('a pipeline of functions that each keep to their time is stopped when all together take too long', async () => {
  const clock = new ManualClock(0);
  const runner = open({ clock, time: 3_600_000 });
  const started = Promise.withResolvers<void>();
  const outcome = runner.run(packageWith('fine', 'never-ends'), never(), ({ type, step }) => {
    if (type === 'started' && step.result.image === image('never-ends')) started.resolve();
  });
  await started.promise;
  clock.advance(15 * 60_000);
  const why = 'it was stopped: all functions together took longer than 15 minutes';
  expect((await outcome).failure).toBe(`Kptfile: pipeline.mutators[1], function "${image('never-ends')}": ${why}`);
  expect(runner.pids).toEqual([]);
});

test('a function whose findings cannot be sent is a failed step', async () => {
  const { failure } = await open().run(packageWith('fine', 'says-a-function'), never());
  expect(failure).toMatch(/^Kptfile: pipeline.mutators\[1\], function "example.com.says-a-function:v1": it crashed: /);
});

test('functions get an empty environment, and their output is discarded', async () => {
  process.env.SLUICE_TEST_SECRET = 'hush';
  try {
    const runner = open();
    const output = JSON.stringify(await runner.run(packageWith('prints', 'reads-the-environment'), never()));
    expect(output).toContain('the environment is {');
    expect(output).not.toContain('hush');
  } finally {
    delete process.env.SLUICE_TEST_SECRET;
  }
});

test('the caller can cancel a rendering, running or waiting; nothing of it is left', async () => {
  const runner = open();
  const reason = new Error('no longer wanted');
  const [first, second] = [new AbortController(), new AbortController()];
  await runner.run(packageWith('fine'), never());
  const { pids } = runner;
  const started = Promise.withResolvers<void>();
  const running = runner.run(packageWith('never-ends'), first.signal, () => started.resolve());
  const waiting = runner.run(packageWith('fine'), second.signal);
  await started.promise;
  second.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  first.abort(reason);
  await expect(running).rejects.toBe(reason);
  expect(await gone(pids)).toBe(true);
  await expect(runner.run(packageWith('fine'), first.signal)).rejects.toBe(reason);
  expect(runner.pids).toEqual([]);
});

test('closing refuses what runs and what waits, and leaves nothing', async () => {
  const runner = open();
  const refused = ['never-ends', 'fine'].map((name) =>
    expect(runner.run(packageWith(name), never())).rejects.toMatchObject({ code: 'Unavailable' }),
  );
  await until(() => runner.pids.length === 1);
  const { pids } = runner;
  await runner.close();
  expect(await gone(pids)).toBe(true);
  await Promise.all(refused);
  await expect(runner.run(packageWith('fine'), never())).rejects.toMatchObject({ code: 'Unavailable' });
});

test('a program that cannot be read is reported, and does not hang', async () => {
  const runner = open({ program: new URL('file:///nowhere/worker.js') });
  await expect(runner.run(packageWith('fine'), never())).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringContaining("Cannot find module '/nowhere/worker.js'"),
  });
});
