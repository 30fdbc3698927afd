import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { skipFor } from '../../../test/support/skip.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { type ExecOptions, ExecRunner } from './exec-runner.ts';
import { isAlive, type ProgramFolder, programFolder } from './testing-programs.ts';

let programs: ProgramFolder;

beforeEach(async () => {
  programs = await programFolder();
});

afterEach(async () => {
  await programs[Symbol.asyncDispose]();
});

const never = () => new AbortController().signal;

function runner(options: Partial<ExecOptions> = {}): ExecRunner {
  const bounds = { time: 20_000, outputBytes: 1024 * 1024, memoryBytes: 512 * 1024 * 1024, clock: systemClock };
  return new ExecRunner({ allowed: { folder: programs.path }, ...bounds, ...options });
}

const leftFolders = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('sluice-exec-'));

test('runs a program with its arguments and input, and returns its output', async () => {
  await programs.add('upper', 'echo "to people" >&2; tr a-z "$1"');
  expect(await runner().run("./upper 'A-Z'", 'kind: x\n', never())).toEqual({
    exitCode: 0,
    stdout: 'KIND: X\n',
    stderr: 'to people\n',
  });
});

test('an exit code is a result, and a signal has the code of shells', async () => {
  await programs.add('three', 'exit 3');
  await programs.add('killed', 'kill -TERM $$');
  expect(await runner().run('three', '', never())).toMatchObject({ exitCode: 3 });
  expect(await runner().run('killed', '', never())).toMatchObject({ exitCode: 143 });
});

test('the environment is empty, and the folder is new and is removed', async () => {
  process.env.SLUICE_TEST_SECRET = 'hush';
  try {
    await programs.add('show', 'env; pwd; touch left-behind; mkdir -p a/b/c');
    const { stdout } = await runner().run('show', '', never());
    expect(stdout).not.toContain('hush');
    const lines = stdout.trim().split('\n');
    const home = lines.find((line) => line.startsWith('HOME='))?.slice(5) ?? '';
    expect(lines.at(-1)).toBe(home);
    expect(lines).toContain('PATH=/usr/bin:/bin');
    expect(home).toContain('sluice-exec-');
    expect(existsSync(home)).toBe(false);
  } finally {
    delete process.env.SLUICE_TEST_SECRET;
  }
});

test('a program that does not read its input is no failure', async () => {
  await programs.add('deaf', 'exec <&-; echo done');
  expect(await runner().run('deaf', 'x'.repeat(10_000_000), never())).toMatchObject({ exitCode: 0, stdout: 'done\n' });
});

test('one that never ends is stopped, with everything that it started', async () => {
  await programs.add(
    'forks',
    `echo $$ > "${programs.path}/pids"; for i in 1 2 3; do sleep 1000 & echo $! >> "${programs.path}/pids"; done; wait`,
  );
  const before = await leftFolders();
  const clock = new ManualClock();
  const stopped = expect(runner({ clock, time: 500 }).run('forks', '', never())).rejects.toMatchObject({
    code: 'Timeout',
    message: 'exec "forks" did not end within 0.5 s and was stopped',
  });
  await expect.poll(() => programs.pids('pids')).toHaveLength(4);
  clock.advance(500);
  await stopped;
  const pids = await programs.pids('pids');
  expect(pids).toHaveLength(4);
  for (const pid of pids) expect(await isAlive(pid)).toBe(false);
  expect(await leftFolders()).toEqual(before);
});

test('children that outlive a program are ended, also those that left its process group and hold its output', async () => {
  const pids = `"${programs.path}/pids"`;
  await programs.add(
    'escapes',
    `sleep 1000 & echo $! >> ${pids}\nsetsid sh -c 'echo $$ >> ${pids}; exec sleep 1000' &\nuntil [ $(wc -l < ${pids}) -eq 2 ]; do sleep 0.01; done; echo fine`,
  );
  expect(await runner().run('escapes', '', never())).toMatchObject({ exitCode: 0, stdout: 'fine\n' });
  const started = await programs.pids('pids');
  expect(started).toHaveLength(2);
  for (const pid of started) expect(await isAlive(pid)).toBe(false);
});

test('one that prints without end is stopped at the bound', async () => {
  await programs.add('prints', 'head -c 1073741824 /dev/zero');
  await expect(runner().run('prints', '', never())).rejects.toMatchObject({
    code: 'LimitExceeded',
    message: 'exec "prints" printed more than 1048576 bytes',
  });
});

test('its standard error is kept up to a bound', async () => {
  await programs.add('chats', 'head -c 10000000 /dev/zero | tr "\\0" x >&2');
  const { stderr } = await runner().run('chats', '', never());
  expect(stderr).toHaveLength(64 * 1024);
});

const noBound = !existsSync('/usr/bin/prlimit') || !existsSync('/usr/bin/perl');
test(
  'one that allocates more than the bound fails',
  skipFor(noBound && 'prlimit or perl is not installed'),
  async () => {
    await programs.add('eats', `exec perl -e '$x = "x" x (1 << 29); print length $x'`);
    const eats = (memoryBytes: number) => runner({ memoryBytes }).run('eats', '', never());
    expect(await eats(4 * 1024 * 1024 * 1024)).toMatchObject({ exitCode: 0, stdout: '536870912' });
    expect(await eats(256 * 1024 * 1024)).toMatchObject({ stderr: expect.stringContaining('Out of memory') });
  },
);

test('the caller can stop it', async () => {
  await programs.add('waits', `echo $$ > "${programs.path}/pids"; exec sleep 1000`);
  const controller = new AbortController();
  const running = runner().run('waits', '', controller.signal);
  const reason = new Error('no longer wanted');
  await expect.poll(() => programs.pids('pids')).toHaveLength(1);
  controller.abort(reason);
  await expect(running).rejects.toBe(reason);
  for (const pid of await programs.pids('pids')) expect(await isAlive(pid)).toBe(false);
  await expect(runner().run('waits', '', controller.signal)).rejects.toBe(reason);
});

test('programs and folders of a killed process are removed by the first run of the next one', async () => {
  const { pid: removed } = spawnSync('true');
  const left = join(tmpdir(), `sluice-exec-${removed}-abcdef`);
  await mkdir(join(left, 'deep'), { recursive: true });
  const stray = spawn('sleep', ['1000'], { env: { HOME: left }, stdio: 'ignore' });
  await programs.add('fine', 'true');
  const fine = runner();
  await fine.run('fine', '', never());
  expect(existsSync(left)).toBe(false);
  expect(await isAlive(stray.pid ?? 0)).toBe(false);
});

test('only executable files inside of the folder run', async () => {
  await programs.add('good', 'true');
  await mkdir(join(programs.path, 'folder'));
  await writeFile(join(programs.path, 'text'), 'no program');
  await symlink('/bin/true', join(programs.path, 'out'));
  await symlink(join(programs.path, 'good'), join(programs.path, 'alias'));
  const refusal = (exec: string) => runner().refusal(exec);
  for (const fine of ['good', './good', 'folder/../good', join(programs.path, 'good'), 'alias -x'])
    expect(await refusal(fine)).toBeUndefined();
  for (const outside of ['out', '/bin/true', '../../../../../../bin/true', programs.path, '.'])
    expect(await refusal(outside)).toContain(`outside of ${programs.path}`);
  expect(await refusal('folder')).toContain('is not an executable file');
  expect(await refusal('text')).toContain('is not an executable file');
  expect(await refusal('sed -e x')).toContain(`there is no such program in ${programs.path}`);
  expect(await refusal('good "')).toContain('cannot be read');
  expect(await runner({ allowed: { folder: join(programs.path, 'gone') } }).refusal('good')).toContain(
    'does not exist',
  );
});

test('if every program is allowed, names are resolved in PATH, but never in the folder of the package', async () => {
  await programs.add('good', 'true');
  const allowed = { anyFrom: programs.path, path: `:.:/usr/bin:/bin` };
  const anything = runner({ allowed });
  expect(await anything.run("sed -e 's/a/b/'", 'a', never())).toMatchObject({ exitCode: 0, stdout: 'b' });
  expect(await anything.refusal('./good')).toBeUndefined();
  expect(await anything.refusal('good')).toContain('there is no such program in PATH');
});
