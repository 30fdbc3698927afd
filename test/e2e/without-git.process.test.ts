import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { sluice } from '../support/cli.ts';
import { fsck, git, initBare, refsOf } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { Up } from '../support/up.ts';

let folder: string;
let data: string;
let server: GitServer;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-without-git-'));
  data = join(folder, 'data');
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, 'node'));
  mkdirSync(join(folder, 'remote'));
  for (const name of ['apps.git', 'edge.git']) {
    const path = initBare(join(folder, 'remote', name));
    const tree = git(path, ['mktree']);
    git(path, ['update-ref', 'refs/heads/main', git(path, ['commit-tree', '-m', 'begin', tree])]);
  }
  // The server has git; Sluice does not.
  server = await startGitServer({ root: join(folder, 'remote') });
  environment = { PATH: bin, SLUICE_DATA: data, SLUICE_ALLOW_GIT_HOST: '127.0.0.1' };
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ok(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await sluice(words, { environment });
  expect(code, `${words.join(' ')}: ${stdout}${stderr}`).toBe(0);
  return stdout;
}

test('version reports which engine is used, why, and what it lacks', async () => {
  const text = await ok('version');
  expect(text).toContain('git    none (isomorphic-git engine)');
  expect(text).toContain('git is not installed');
  expect(text).toMatch(/ssh remotes.*Install git 2\.39/);
});

test('packages of a local repository and of one over HTTP are created, pushed, approved and delivered without git', async () => {
  await ok('repo', 'reg', 'sluice:///own.git', '--create-branch');
  await ok('repo', 'reg', `${server.url}/apps.git`);
  for (const repository of ['own', 'apps']) {
    const name = `${repository}.${repository}-shop.v1`;
    const work = join(folder, `work-${repository}`);
    await ok('rpkg', 'init', `${repository}-shop`, '--repository', repository, '--workspace', 'v1');
    await ok('rpkg', 'pull', name, work);
    const manifest = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${repository}\n  namespace: default\n`;
    writeFileSync(join(work, 'map.yaml'), manifest);
    await ok('rpkg', 'push', name, work);
    await ok('rpkg', 'propose', name);
    await ok('rpkg', 'approve', name);
  }
  const conf = join(folder, 'conf');
  mkdirSync(conf);
  const target = (name: string, address: string) => `---
apiVersion: sluice.dev/v1alpha1
kind: DeliveryTarget
metadata: { name: ${name} }
spec: { selector: { repositories: [own, apps] }, git: { repo: "${address}", createBranch: true } }
`;
  writeFileSync(
    join(conf, 'all.yaml'),
    target('site', 'sluice:///site.git') + target('edge', `${server.url}/edge.git`),
  );
  const log = await sluice(['up', '--config', conf, '--until-idle'], { environment });
  expect(log.code, log.stdout + log.stderr).toBe(0);
  expect(log.stdout + log.stderr).toContain('git is not installed');

  for (const path of [join(data, 'repositories/site.git'), join(folder, 'remote/edge.git')]) {
    const files = git(path, ['ls-tree', '-r', '--name-only', 'main']).split('\n');
    expect(files).toEqual(expect.arrayContaining(['own-shop/map.yaml', 'apps-shop/map.yaml']));
    fsck(path);
  }
  for (const [path, tag] of [
    [join(data, 'repositories/own.git'), 'refs/tags/own-shop/v1'],
    [join(folder, 'remote/apps.git'), 'refs/tags/apps-shop/v1'],
  ] as const) {
    expect([...refsOf(path).keys()]).toContain(tag);
    fsck(path);
  }
});

test('a running server reports in the condition of a repository the transport of its remote', async () => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const up = new Up(data, '--allow-git-host', '127.0.0.1');
  vi.unstubAllEnvs();
  try {
    await up.said(/kubectl --kubeconfig/);
    await expect.poll(() => ok('repo', 'get', 'apps', '-o', 'wide')).toMatch(/ OwnClient /);
    const shown = await ok('repo', 'get', 'apps', '-o', 'yaml');
    expect(shown).toMatch(/type: sluice.dev\/Transport\n +status: 'True'\n +reason: OwnClient/);
    expect(shown).toContain('git is not installed');
    expect(up.output).not.toMatch(/error/i);
  } finally {
    await up.end('SIGTERM');
  }
});

test('pushes by others over HTTP are fetched, also into a new data folder', async () => {
  const path = join(folder, 'remote/apps.git');
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: other\n';
  const blob = git(path, ['hash-object', '-w', '--stdin'], kptfile);
  const tree = git(path, ['mktree'], `040000 tree ${git(path, ['mktree'], `100644 blob ${blob}\tKptfile\n`)}\tother\n`);
  const commit = git(path, ['commit-tree', '-p', 'main', '-m', 'a draft', tree]);
  git(path, ['update-ref', 'refs/heads/drafts/other/v1', commit]);
  expect(await ok('rpkg', 'get')).toContain('apps.other.v1');
  environment = { ...environment, SLUICE_DATA: join(folder, 'second') };
  await ok('repo', 'reg', `${server.url}/apps.git`);
  const listed = await ok('rpkg', 'get');
  expect(listed).toContain('apps.other.v1');
  expect(listed).toContain('apps.apps-shop.v1');
  environment = { ...environment, SLUICE_DATA: data };
});

test('an ssh remote is refused with what to install', async () => {
  const { stdout, stderr } = await sluice(['repo', 'reg', 'ssh://git@127.0.0.1/x.git'], { environment });
  expect(stdout + stderr).toMatch(/ssh.*[Ii]nstall git 2\.39/s);
});
