import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { containerArguments } from './container-arguments.ts';
import { type Engine, engineEnvironment, findEngine } from './container-engine.ts';
import { type ContainerOptions, ContainerRunner } from './container-runner.ts';
import { runProcess } from './run-process.ts';
import { programFolder } from './testing-programs.ts';

const MIB = 1024 * 1024;
const never = () => new AbortController().signal;

function runner(options: Partial<ContainerOptions> = {}): ContainerRunner {
  return new ContainerRunner({
    ...{ env: engineEnvironment(process.env), requireDigest: false, allowNetwork: false, pull: 'missing' },
    ...{ time: 30_000, outputBytes: MIB, memoryBytes: 256 * MIB, clock: systemClock },
    instead: 'name another',
    newName: () => `sluice-test-${randomUUID()}`,
    ...options,
  });
}

describe('arguments', () => {
  const run = {
    engine: 'docker',
    name: 'sluice-1',
    image: 'gcr.io/kpt-fn/x:v1',
    allowNetwork: false,
    memoryBytes: MIB,
  } as const;

  test('remove all privileges, and end with the image', () => {
    const words = containerArguments(run).join(' ');
    for (const part of [
      ...['--network none', '--read-only', '--cap-drop ALL', '--security-opt no-new-privileges', '--user 65534:65534'],
      ...['--pids-limit 256', '--memory 1048576', '--memory-swap 1048576', '--tmpfs /tmp:', '--pull never', '--rm'],
      ...['--name sluice-1', '--interactive', '--log-driver none'],
    ])
      expect(words).toContain(part);
    expect(words.startsWith('run ')).toBe(true);
    expect(words.endsWith(' gcr.io/kpt-fn/x:v1')).toBe(true);
    expect(words).not.toMatch(/--privileged|--volume|--mount|--publish/);
  });

  test('enable the network only on request', () => {
    expect(containerArguments({ ...run, allowNetwork: true }).join(' ')).toContain('--network host');
  });

  test('omit options for nerdctl that it does not support', () => {
    expect(containerArguments({ ...run, engine: 'nerdctl' })).not.toContain('--log-driver');
  });
});

// Needs no service of docker: its command line reads the options before it looks for one.
test('options are such as the real docker takes', async ({ skip }) => {
  const env = { PATH: process.env.PATH ?? '', DOCKER_HOST: 'unix:///nowhere/docker.sock' };
  const words = containerArguments({
    ...{ engine: 'docker', name: 'sluice-1', image: 'example.com/x:v1', allowNetwork: false, memoryBytes: 64 * MIB },
  });
  const bounds = { time: 20_000, outputBytes: MIB, clock: systemClock, signal: never(), cwd: '/', input: '' };
  const call = { ...bounds, title: 'docker run', env, file: 'docker', arguments: words };
  const answer = await runProcess(call).catch((error: Error) => error);
  if (answer instanceof Error) return skip(answer.message);
  expect(answer.stderr).toContain('unix:///nowhere/docker.sock');
  const wrong = await runProcess({ ...call, arguments: ['run', '--no-such-option', 'x'] });
  expect(wrong.stderr).not.toContain('/nowhere/');
});

test('an engine gets the accounts of registries, and no other secret of this process', () => {
  expect(engineEnvironment({ PATH: '/bin', DOCKER_CONFIG: '/d', SLUICE_TOKEN: 'hush' })).toEqual({
    PATH: '/bin',
    DOCKER_CONFIG: '/d',
  });
});

test('an invalid image, and one that is not pinned where required, is refused before an engine is called', async () => {
  await using programs = await programFolder();
  const env = { PATH: programs.path };
  await programs.add('docker', `echo 1 >> ${programs.path}/asked`);
  expect(await runner({ env }).refusal('--privileged')).toContain('is not a valid name');
  expect(await runner({ env, requireDigest: true }).refusal('example.com/fn:v1')).toBe(
    'image example.com/fn:v1 cannot be run: only pinned images are allowed; add @sha256:<digest> to its name, or name another',
  );
  await expect(runner({ env }).run('-x', '', never())).rejects.toMatchObject({ code: 'Unavailable' });
  expect(await programs.pids('asked')).toEqual([]);
  expect(await runner({ env, requireDigest: true }).refusal(`fn@sha256:${'0'.repeat(64)}`)).toBeUndefined();
  expect(await programs.pids('asked')).toEqual([1]);
});

test('without an engine it reports the next step', async () => {
  expect(await runner({ env: { PATH: '/nowhere' } }).refusal('fn')).toBe(
    'image fn cannot be run: there is no container engine; install docker, podman or nerdctl, or name another',
  );
  expect(await runner({ env: { PATH: '/nowhere' }, engine: 'podman' }).refusal('fn')).toContain('install podman,');
});

// Programs with the same command line stand in for an engine; a real one runs below where it is installed.
test('an engine that does not answer is skipped, and its message is reported', async () => {
  await using programs = await programFolder();
  const env = { PATH: `${programs.path}:/usr/bin:/bin` };
  await programs.add('docker', 'echo "Cannot connect to the daemon." >&2; exit 1');
  await programs.add('podman', 'exit 1');
  await programs.add('nerdctl', 'exit 1');
  expect(await runner({ env }).refusal('fn')).toContain(
    'no container engine answers (docker: Cannot connect to the daemon.; podman: exit code 1; nerdctl: exit code 1); start it',
  );
  await programs.add('nerdctl', 'exit 0');
  expect(await findEngine({ env, time: 5_000, clock: systemClock })).toEqual({
    engine: { name: 'nerdctl', program: `${programs.path}/nerdctl` },
  });
});

test('a run that takes too long is ended by name through its engine', async () => {
  await using programs = await programFolder();
  const log = `${programs.path}/log`;
  await programs.add('docker', `echo "$@" >> ${log}; case $1 in run) sleep 1000;; esac`);
  const env = { PATH: `${programs.path}:/usr/bin:/bin` };
  const clock = new ManualClock();
  const running = runner({ env, clock, time: 300, newName: () => 'sluice-9' }).run('fn', '', never());
  const stopped = expect(running).rejects.toMatchObject({
    code: 'Timeout',
    message: 'image fn did not end within 0.3 s and was stopped',
  });
  await expect.poll(() => readFile(log, 'utf8').catch(() => '')).toContain('run --rm');
  clock.advance(300);
  await stopped;
  const calls = (await readFile(log, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => line.split(' ').slice(0, 2).join(' '));
  expect(calls).toEqual(['version', 'image inspect', 'run --rm', 'kill sluice-9', 'rm --force']);
});

test('an image that cannot be pulled or started is unavailable, with the reason', async () => {
  await using programs = await programFolder();
  const env = { PATH: `${programs.path}:/usr/bin:/bin` };
  await programs.add(
    'docker',
    'case $1 in image) exit 1;; pull) echo "Error response from daemon: manifest unknown" >&2; exit 1;; esac',
  );
  await expect(runner({ env }).run('fn', '', never())).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringMatching(/^image fn cannot be pulled: manifest unknown; check its name, or name another$/),
  });
  await programs.add(
    'docker',
    'case $1 in run) printf "docker: Error response from daemon: no such image\\n\\nRun \'docker run --help\' for more information\\n" >&2; exit 125;; esac',
  );
  await expect(runner({ env, pull: 'never' }).run('fn', '', never())).rejects.toMatchObject({
    code: 'Unavailable',
    message: 'docker cannot run image fn: no such image',
  });
});

describe('with a real engine', () => {
  const IMAGE = 'docker.io/library/busybox:1.37';
  let engine: Engine | undefined;
  let why = '';

  beforeAll(async () => {
    const env = engineEnvironment(process.env);
    const found = await findEngine({ env, time: 5_000, clock: systemClock });
    if ('refusal' in found) why = found.refusal;
    else {
      const bounds = { time: 60_000, outputBytes: MIB, clock: systemClock, signal: never(), env, cwd: '/', input: '' };
      const pull = { file: found.engine.program, arguments: ['pull', '--quiet', IMAGE], title: 'pull' };
      const pulled = await runProcess({ ...bounds, ...pull });
      if (pulled.exitCode === 0) engine = found.engine;
      else why = `${IMAGE} cannot be pulled: ${pulled.stderr}`;
    }
    if (engine === undefined) console.warn(`skipped: ${why}`);
  }, 90_000);

  test('runs the image and refuses what it must not do', async ({ skip }) => {
    if (engine === undefined) return skip(why);
    expect(
      await runner({ pull: 'never' }).run(IMAGE, 'id; touch /x; wget -T1 http://1.1.1.1\n', never()),
    ).toMatchObject({
      stdout: expect.stringContaining('uid=65534'),
      stderr: expect.stringMatching(/Read-only file system[\s\S]*(unreachable|bad address)/),
    });
  });

  test('ends a container that never ends', async ({ skip }) => {
    if (engine === undefined) return skip(why);
    const running = runner({ time: 2_000 }).run(IMAGE, 'sleep 1000\n', never());
    await expect(running).rejects.toMatchObject({ code: 'Timeout' });
  });
});
