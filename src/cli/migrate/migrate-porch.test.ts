import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import { revisionUid } from '../../package/model/identity/identity.ts';
import { type CliFixture, cliFixture, runCli } from '../testing.ts';
import type { MigrationReport } from './migration-report.ts';

// What Porch itself answers is tested in test/cluster/migrate-porch.test.ts. Here is what its version there does not do.

const CONFIG = '/apis/config.porch.kpt.dev/v1alpha1';
const PACKAGES = '/apis/porch.kpt.dev/v1alpha1/namespaces/team';

let fixture: CliFixture;
let server: WireServer;
let kubeconfig: string;
/** Objects by the path of their list. */
let objects: Record<string, readonly { readonly metadata: { readonly name: string } }[]>;
/** Paths that the server refuses, with the status. */
let failures: Record<string, number>;

const meta = (name: string, more: object = {}) => ({
  metadata: {
    name,
    namespace: 'team',
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...more,
  },
});
const repository = (name: string, git: object = {}) => ({
  ...meta(name),
  spec: { type: 'git', git: { repo: join(fixture.folder, `${name}.git`), branch: 'main', directory: '/', ...git } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
});
const revision = (name: string, spec: object = {}, more: object = {}) => {
  const [repo, packageName, workspaceName] = name.split('.');
  return { ...meta(name, more), spec: { repository: repo, packageName, workspaceName, lifecycle: 'Draft', ...spec } };
};

beforeEach(async () => {
  fixture = await cliFixture();
  for (const name of ['apps', 'more']) fixture.bare(`${name}.git`);
  objects = { [`${CONFIG}/repositories`]: [repository('apps'), repository('more')] };
  failures = {};
  server = new WireServer();
  server.handle = ({ path, query }, response) => {
    if (path === '/version') return sendJson(response, 200, { gitVersion: 'v1.33.1' });
    if (path === CONFIG) return sendJson(response, 200, { kind: 'APIResourceList', resources: [] });
    const failure = failures[path];
    if (failure !== undefined) return sendStatus(response, failure, 'Forbidden', 'not now');
    // Lists of one namespace have the objects of all: there is no other.
    const list = path.replace('/namespaces/team', '');
    const [, wanted] = (query.get('fieldSelector') ?? '').split('=');
    const isWanted = ({ metadata: { name } }: { readonly metadata: { readonly name: string } }) =>
      wanted === undefined || name.startsWith(`${wanted}.`);
    const items = objects[list] ?? (list.endsWith('/packagerevisions') && list.includes('v1alpha1') ? [] : undefined);
    if (items === undefined)
      return sendStatus(response, 404, 'NotFound', 'the server could not find the requested resource');
    return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: items.filter(isWanted) });
  };
  await server.start();
  kubeconfig = join(fixture.folder, 'porch.kubeconfig');
  await writeFile(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: server.access().server } }],
      users: [{ name: 'anna', user: { token: 's3cr3t' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'anna', namespace: 'team' } }],
      'current-context': 'c',
    }),
  );
});
afterEach(async () => {
  await server.stop();
  await fixture[Symbol.asyncDispose]();
});

const migrate = async (...words: string[]) => {
  const { code, stdout, stderr } = await fixture.run(
    'migrate',
    'porch',
    '--kubeconfig',
    kubeconfig,
    ...words,
    '-o',
    'json',
  );
  if (stdout === '') throw new Error(stderr);
  return { code, stderr, ...(JSON.parse(stdout) as MigrationReport) };
};

test('goes on after a repository that fails, and the next run adds what is missing', async () => {
  const list = `${PACKAGES}/packagerevisions`;
  let calls = 0;
  const handle = server.handle;
  server.handle = (request, response) => {
    calls += request.path === list ? 1 : 0;
    if (request.path === list && calls === 1) return sendStatus(response, 403, 'Forbidden', 'not now');
    return handle(request, response);
  };
  expect(await migrate('--yes')).toMatchObject({
    code: 1,
    repositories: [{ action: 'blocked', message: expect.stringContaining('not now') }, { action: 'registered' }],
  });
  expect(await migrate('--yes')).toMatchObject({
    ...{ code: 0, differences: [] },
    repositories: [{ action: 'registered' }, { action: 'present' }],
  });
});

test('reports drafts that Porch keeps in its database', async () => {
  objects['/apis/porch.kpt.dev/v1alpha1/packagerevisions'] = [revision('apps.web.v1')];
  const report = await migrate('--yes', '--only', 'apps');
  expect(report).toMatchObject({ code: 1, repositories: [{ porch: 1, sluice: 0, alike: 0 }] });
  expect(report.differences).toEqual([
    expect.objectContaining({ name: 'apps.web.v1', porch: 'Draft', next: expect.stringContaining('database') }),
  ]);
});

test('a package whose files Porch cannot show is a difference, and what was registered before that stays', async () => {
  expect(await fixture.run('repo', 'reg', join(fixture.folder, 'apps.git'))).toMatchObject({ code: 0 });
  expect(await fixture.run('rpkg', 'init', 'web', '--repository', 'apps', '--workspace', 'v1')).toMatchObject({
    code: 0,
  });
  objects['/apis/porch.kpt.dev/v1alpha1/packagerevisions'] = [
    revision('apps.web.v1', {}, { uid: revisionUid('apps.web.v1', 'team') }),
  ];
  const fresh = ['--only', 'apps', '--data', join(fixture.folder, 'fresh')];
  const path = `${PACKAGES}/packagerevisionresources/apps.web.v1`;
  failures[path] = 403;
  expect(await migrate(...fresh, '--yes')).toMatchObject({
    ...{ code: 1, repositories: [{ action: 'registered', alike: 0 }] },
    differences: [{ name: 'apps.web.v1', field: 'contents', porch: expect.stringContaining('not now') }],
  });
  expect(await migrate(...fresh, '--yes', '--no-contents')).toMatchObject({
    ...{ code: 0, repositories: [{ action: 'present', alike: 1 }] },
  });
});

test('a dry run reports closed gates, deletions, publications and what stays in the cluster', async () => {
  const gates = { readinessGates: [{ conditionType: 'Tested' }] };
  objects['/apis/porch.kpt.dev/v1alpha1/packagerevisions'] = [
    revision('apps.web.v1', { lifecycle: 'Published', revision: 1 }),
    revision('apps.web.v2', gates),
    revision('apps.web.v3', {}, { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/keep'] }),
  ];
  objects['/apis/porch.kpt.dev/v1alpha2/packagerevisions'] = [meta('more.api.v1')];
  objects[`${CONFIG}/functionconfigs`] = [meta('set-labels')];
  failures[`${CONFIG}/packagevariants`] = 403;
  const { code, notes } = await migrate();
  expect(code).toBe(0);
  expect(notes.map(({ subject, reason, names }) => [subject, reason, ...names])).toEqual([
    ['apps', 'OutOfBand', 'apps.web.v1'],
    ['apps', 'GatesClosed', 'apps.web.v2'],
    ['apps', 'BeingDeleted', 'apps.web.v3'],
    ['PackageVariant', 'Refused'],
    ['FunctionConfig', 'Stays', 'set-labels'],
    ['PackageRevision', 'CustomResources', 'more.api.v1'],
  ]);
  const text = await fixture.run('migrate', 'porch', '--kubeconfig', kubeconfig);
  expect(text.stdout).toMatch(/^team\/apps +\S+apps\.git +would register +- +3 +- +-$/m);
  expect(text.stderr).toContain('0 of 2 repositories alike, 2 to register; nothing was changed');
});

test('a Secret is copied on request only, and never printed', async () => {
  objects[`${CONFIG}/repositories`] = [repository('apps', { secretRef: { name: 'auth' } })];
  const password = Buffer.from('pass-word').toString('base64');
  const secret = { ...meta('auth'), type: 'kubernetes.io/basic-auth', data: { username: password, password } };
  const handle = server.handle;
  server.handle = (request, response) =>
    request.path === '/api/v1/namespaces/team/secrets/auth'
      ? sendJson(response, 200, secret)
      : handle(request, response);
  expect(await migrate('--yes')).toMatchObject({
    code: 1,
    repositories: [
      { action: 'blocked', secret: { state: 'missing' }, next: expect.stringContaining('--include-secrets') },
    ],
  });
  const report = await migrate('--yes', '--include-secrets');
  expect(report).toMatchObject({ code: 0, repositories: [{ action: 'registered', secret: { state: 'copied' } }] });
  expect(JSON.stringify(report)).not.toMatch(/pass-word|cGFzcy13b3Jk/);
  expect(await migrate('--yes')).toMatchObject({ repositories: [{ action: 'present', secret: { state: 'present' } }] });
});

test('a repository of which Porch cannot show everything is reported', async () => {
  const broken = repository('apps');
  const [ready] = broken.status.conditions;
  const message = 'cannot read https://bot:pass-word@git.example.com/apps.git';
  objects[`${CONFIG}/repositories`] = [
    { ...broken, status: { conditions: [{ ...ready, status: 'False', message }] } } as never,
  ];
  const { notes } = await migrate();
  expect(notes).toEqual([expect.objectContaining({ reason: 'NotReady', message: expect.stringContaining('***@') })]);
});

test('wrong command lines have the next step', async () => {
  const run = (...words: string[]) => runCli(['migrate', 'porch', ...words], { SLUICE_DATA: fixture.data });
  expect(await run()).toMatchObject({ code: 2, stderr: expect.stringContaining('--kubeconfig <file>') });
  const named = ['--kubeconfig', kubeconfig];
  expect(await run(...named, '--to-context', 'a')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--to-kubeconfig'),
  });
  expect(await run(...named, '--wait', 'long')).toMatchObject({ code: 2, stderr: expect.stringContaining('5m') });
  expect(await run(...named, '--to-kubeconfig', kubeconfig)).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('name the server of Sluice') },
  });
});

test('a namespace without repositories and unknown names of repositories are errors with the next step', async () => {
  const run = (...words: string[]) => runCli(['migrate', 'porch', '--kubeconfig', kubeconfig, ...words]);
  const unknown = await run('--only', 'nope', '--data', fixture.data);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toMatch(/--only: Porch has no repository nope in any namespace; it has \w+/);
  objects[`${CONFIG}/namespaces/nope/repositories`] = [];
  const empty = await run('-n', 'nope', '--data', fixture.data);
  expect(empty.code).toBe(1);
  expect(empty.stderr).toContain('Porch has no repositories in namespace nope: check -n, or leave it out');
});
