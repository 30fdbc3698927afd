import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { editKptfile } from '../../kptfile-schema/index.ts';
import { sluice } from '../support/cli.ts';
import { type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import {
  BASE,
  configMap,
  HOSTILE_PACKAGES,
  type HostileFile,
  kptfile,
  NAMESPACE,
  writeFiles,
  writeProgram,
  writePrograms,
} from './hostile-packages.ts';

let top = '';
let programs = '';
let count = 0;
beforeAll(async () => {
  top = await mkdtemp(join(tmpdir(), 'sluice-hostile-'));
  programs = join(top, 'programs');
  await writePrograms(programs);
});
afterAll(() => rm(top, { recursive: true, force: true }));

async function packageFolder(files: Readonly<Record<string, HostileFile>>): Promise<string> {
  const path = join(top, `p${count++}`, 'app');
  await writeFiles(path, files);
  return path;
}

const render = (folder: string) => sluice(['fn', 'render', folder, '--allow-exec'], { cwd: programs });
const read = (folder: string, name: string) => readFile(join(folder, name), 'utf8');

/** The running programs of this test, by their folders. */
async function leftProcesses(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.includes(programs) || line.includes('sleep\u0000997'));
}

const leftFolders = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('sluice-exec-'));

const PUBLISHED = editKptfile(kptfile(NAMESPACE), [
  { op: 'setAnnotation', key: 'config.porch.kpt.dev/auto-lifecycle-mgmt', value: 'true' },
  { op: 'setAnnotation', key: 'approval.nephio.org/policy', value: 'initial' },
]);

/** Pushes every package as a draft of its own, with Git's own program. */
async function pushAll(scratch: Scratch, packages: Readonly<Record<string, Readonly<Record<string, HostileFile>>>>) {
  const tree = join(scratch.folder, 'tree');
  for (const [name, files] of Object.entries(packages)) await writeFiles(join(tree, name, name), files);
  const env = {
    ...process.env,
    GIT_DIR: scratch.path,
    GIT_WORK_TREE: tree,
    GIT_INDEX_FILE: join(scratch.folder, 'index'),
  };
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@example.com', ...words], { cwd: tree, env })
      .toString()
      .trim();
  git('add', '--all', '--force');
  for (const name of Object.keys(packages)) {
    const commit = git('commit-tree', '-p', 'main', '-m', `Add ${name}`, git('write-tree', `--prefix=${name}/`));
    git('update-ref', `refs/heads/drafts/${name}/v1`, commit);
  }
}

test('sluice up: every hostile package is reported in one line, and the others continue', async () => {
  await using scratch = await scratchRepository();
  const packages = Object.entries(HOSTILE_PACKAGES).map(([name, { files }]) => [name, files] as const);
  await pushAll(scratch, {
    ...Object.fromEntries(packages),
    'a-good-one': { Kptfile: PUBLISHED, ...BASE },
    'z-good-one': { Kptfile: PUBLISHED, ...BASE },
  });
  const config = join(scratch.folder, 'repository.yaml');
  await writeFile(
    config,
    `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: { name: packages }\nspec: { type: git, git: { repo: "file://${scratch.path}" } }\n---\napiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: { name: kptfile-approvals }\nspec: { kptfileApprovals: true }\n`,
  );
  const words = ['--data', join(scratch.folder, 'data'), '--config', config, '--function-programs', programs];
  const ran = await sluice(['up', ...words, '--until-idle']);
  expect(ran.code, ran.stdout + ran.stderr).toBe(0);
  const refs = await scratch.git('for-each-ref', '--format=%(refname)');
  expect(refs).toContain('refs/tags/a-good-one/v1');
  expect(refs).toContain('refs/tags/z-good-one/v1');
  for (const [name, { failure }] of Object.entries(HOSTILE_PACKAGES)) {
    const draft = `refs/heads/drafts/${name}/v1`;
    const { status } = parse(await scratch.git('show', `${draft}:${name}/Kptfile`));
    const rendered = status?.conditions?.find(({ type }: { type: string }) => type === 'Rendered');
    expect(rendered, name).toMatchObject({ status: failure === undefined ? 'True' : 'False' });
    if (failure === undefined) continue;
    expect(rendered.message).toMatch(failure);
    expect(rendered.message).not.toMatch(/[\n\u001b]/);
    const changed = await scratch.git('diff', '--name-only', `${draft}~1`, draft);
    expect(changed, name).toBe(`${name}/Kptfile`);
  }
  expect(await leftProcesses()).toEqual([]);
  expect(await leftFolders()).toEqual([]);
});

test('sluice fn render: only the status changes, with a message of one line and exit code 1', async () => {
  for (const name of ['gigabyte', 'moves-out', 'target-field']) {
    const { files, failure } = HOSTILE_PACKAGES[name] ?? { files: {} };
    const folder = await packageFolder(files);
    // A pipeline starts programs in the working directory of the user.
    const before = String(files.Kptfile).replace(/exec: (\S+) /, 'exec: ./$1 ');
    await writeFile(join(folder, 'Kptfile'), before);
    const { code, stdout, stderr } = await render(folder);
    expect([code, stdout], stderr).toEqual([1, '']);
    const line = stderr
      .trimEnd()
      .split('\n')
      .at(-1)
      ?.replace('function "./', 'function "')
      .replace('exec "./', 'exec "');
    expect(line?.startsWith('error: ')).toBe(true);
    expect(line?.slice('error: '.length)).toMatch(failure ?? /never/);
    expect((await readdir(folder)).sort()).toEqual(Object.keys(files).sort());
    for (const path of ['a.yaml', 'b.yaml']) expect(await read(folder, path)).toBe(files[path]);
    expect((await read(folder, 'Kptfile')).startsWith(before)).toBe(true);
  }
  expect(await leftProcesses()).toEqual([]);
  expect(await leftFolders()).toEqual([]);
});

test('sluice fn render: files that functions do not handle are skipped and named, and stay byte for byte', async () => {
  const odd = { ...HOSTILE_PACKAGES['nothing-for-functions']?.files, ...HOSTILE_PACKAGES['odd-text']?.files };
  const folder = await packageFolder(odd);
  const { code, stderr } = await render(folder);
  expect(code, stderr).toBe(0);
  expect(stderr).not.toContain('\u001b');
  const noted = [...stderr.matchAll(/^\[WARN\] ([^:]+)/gm)].map(([, path]) => path);
  const passedOver = [
    'bytes.yaml',
    'deep.yaml',
    'link.yaml',
    'list.yaml',
    'nested/Kptfile',
    'text.yaml',
    'values.yaml',
  ];
  expect(noted.sort()).toEqual(passedOver);
  expect(await read(folder, 'crlf.yaml')).toBe(
    String(odd['crlf.yaml']).replace(/(name: \w)/g, '$1\r\n  namespace: blog'),
  );
  expect(await read(folder, 'bom.yaml')).toBe(`${odd['bom.yaml']}  namespace: blog\n`);
  expect(await read(folder, '__proto__.yaml')).toContain('namespace: blog');
  expect(await readdir(folder)).toHaveLength(new Set(Object.keys(odd).map((path) => path.split('/')[0])).size);

  const linked = await packageFolder({ Kptfile: { link: '/etc/hostname' }, ...BASE });
  const refused = await render(linked);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/^\[WARN\] Kptfile: not a regular file.*\nerror: .* has no Kptfile/);
  const newline = await packageFolder({ Kptfile: kptfile(NAMESPACE), 'a\nb.yaml': configMap('x') });
  expect((await render(newline)).stderr).toContain('error: path "a\\nb.yaml" is refused');
  expect(await read(newline, 'a\nb.yaml')).toBe(configMap('x'));
});

test('sluice fn render: a program that replaces files by links changes nothing behind them', async () => {
  const secret = join(top, 'secret.yaml');
  await writeFile(secret, configMap('secret'));
  const folder = await packageFolder({ Kptfile: kptfile('exec: ./swaps', NAMESPACE), ...BASE });
  await writeProgram(programs, 'swaps', `ln -sf '${secret}' '${folder}/a.yaml'; cat`);
  const { code, stderr } = await render(folder);
  expect(code).toBe(1);
  expect(stderr).toMatch(/error: a\.yaml is not written: .*links are not followed/);
  expect(await readFile(secret, 'utf8')).toBe(configMap('secret'));
  expect(await read(folder, 'b.yaml')).toBe(BASE['b.yaml']);
});

test('sluice fn render: 10,000 resources are rendered, and only what changes is written', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 10 }, (_, file) => [
      `r${file}.yaml`,
      Array.from({ length: 1_000 }, (_, at) => configMap(`r${file}-${at}`)).join('---\n'),
    ]),
  );
  const folder = await packageFolder({ Kptfile: kptfile(`${NAMESPACE}, selectors: [{ name: r7-500 }]`), ...many });
  const { code, stderr } = await render(folder);
  expect(code, stderr).toBe(0);
  for (const [path, text] of Object.entries(many))
    expect(
      (await read(folder, path)) === text.replace('name: r7-500\n', 'name: r7-500\n  namespace: blog\n'),
      path,
    ).toBe(true);
});

const BINARY = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const start = (folder: string) =>
  spawn(process.execPath, [BINARY, 'fn', 'render', folder, '--allow-exec'], { cwd: programs, stdio: 'ignore' });

async function sleeping(): Promise<void> {
  const pids = join(programs, 'asleep');
  while (!existsSync(pids)) await delay(20);
  await rm(pids);
}

test('sluice fn render: a function that never ends is stopped by Ctrl-C, and by the next run after a kill -9', async () => {
  const folder = await packageFolder({ Kptfile: kptfile('exec: ./sleeps-forever'), ...BASE });
  const stopped = start(folder);
  await sleeping();
  stopped.kill('SIGINT');
  expect(await once(stopped, 'close')).toEqual([130, null]);
  expect(await leftProcesses()).toEqual([]);
  expect(await leftFolders()).toEqual([]);

  const killed = start(folder);
  await sleeping();
  killed.kill('SIGKILL');
  await once(killed, 'close');
  const next = await packageFolder({ Kptfile: kptfile('exec: cat'), ...BASE });
  expect((await render(next)).code).toBe(0);
  expect(await leftProcesses()).toEqual([]);
  expect(await leftFolders()).toEqual([]);
  expect(await read(folder, 'Kptfile')).toBe(kptfile('exec: ./sleeps-forever'));
});

test('sluice fn render: killed at any time, every file is complete, and the next run finishes and cleans up', async () => {
  const old = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`r${at}.yaml`, configMap(`r${at}`)]));
  const folder = await packageFolder({ Kptfile: kptfile(NAMESPACE), ...old });
  for (let run = 0; run < 4; run++) {
    const child = start(folder);
    const closed = once(child, 'close');
    // The first one anywhere, the others during the writes.
    const isWriting = async () => (await readdir(folder)).some((name) => name.startsWith('.sluice-write-'));
    while (run > 0 && child.exitCode === null && !(await isWriting())) await delay(1);
    await delay(Math.random() * (run === 0 ? 1_500 : 60));
    child.kill('SIGKILL');
    await closed;
    for (const [path, text] of Object.entries(old))
      expect([text, `${text}  namespace: blog\n`]).toContain(await read(folder, path));
    await writeFiles(folder, old);
  }
  const { code, stderr } = await render(folder);
  expect(code, stderr).toBe(0);
  for (const [path, text] of Object.entries(old)) expect(await read(folder, path)).toBe(`${text}  namespace: blog\n`);
  expect((await readdir(folder)).sort()).toEqual(['Kptfile', ...Object.keys(old)].sort());
});
