import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { gone, image, never, open, packageWith, until } from './testing-runner.ts';

test('starts nothing before the first package, and keeps its worker warm', async () => {
  const runner = open();
  expect(runner.pids).toEqual([]);
  const outcome = await runner.run(packageWith('fine'), never());
  expect(outcome.failure).toBeUndefined();
  expect(outcome.steps).toMatchObject([
    { packagePath: '', list: 'mutators', result: { image: image('fine'), exitCode: 0 } },
  ]);
  const { pids } = runner;
  expect(pids).toHaveLength(1);
  await runner.run(packageWith('fine', 'fine'), never());
  expect(runner.pids).toEqual(pids);
});

test.runIf(process.platform === 'linux')(
  'a Ctrl-C in the terminal of this process does not reach a worker',
  async () => {
    const runner = open();
    await runner.run(packageWith('fine'), never());
    const groups = runner.pids.map((pid) =>
      Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]),
    );
    expect(groups).toEqual(runner.pids);
  },
);

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

test('events report the progress', async () => {
  const events: string[] = [];
  await open().run(packageWith('fine', 'throws'), never(), ({ type, step: { result } }) =>
    events.push(`${type} ${result.image} ${result.exitCode}`),
  );
  expect(events).toEqual([
    `started ${image('fine')} undefined`,
    `finished ${image('fine')} 0`,
    `started ${image('throws')} undefined`,
    `finished ${image('throws')} 1`,
  ]);
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
