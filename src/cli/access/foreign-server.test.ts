import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Received, sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import { runCli } from '../testing.ts';

const PACKAGES = '/apis/porch.kpt.dev/v1alpha1/namespaces/team/packagerevisions';
const FILES = '/apis/porch.kpt.dev/v1alpha1/namespaces/team/packagerevisionresources';
const name = 'blueprints.upf.v1';

/** A server that answers as Porch does: commits in no status, no sub-resource for conditions, gates left to its clients. */
let server: WireServer;
let folder: string;
let revision: Record<string, unknown>;
let files: Record<string, unknown>;
let repositories: () => object[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-foreign-'));
  const metadata = {
    name,
    namespace: 'team',
    uid: 'u',
    resourceVersion: 'a1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
  const spec = { packageName: 'upf', repository: 'blueprints', workspaceName: 'v1' };
  revision = {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata,
    spec: { ...spec, lifecycle: 'Proposed', readinessGates: [{ conditionType: 'Tested' }] },
    status: { publishTimestamp: null, conditions: [{ type: 'Tested', status: 'False' }] },
  };
  files = {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevisionResources',
    metadata,
    spec: { ...spec, resources: { Kptfile: 'kind: Kptfile\n', 'a.yaml': 'a: 1\n' } },
  };
  repositories = () => [];
  server = new WireServer();
  server.handle = (request, response) => {
    const { method, path, body } = request;
    if (path === '/version') return sendJson(response, 200, { gitVersion: 'v1.33.1' });
    if (path.endsWith('/repositories')) {
      if (request.query.has('watch')) return sendStatus(response, 403, 'Forbidden', 'may not watch');
      return sendJson(response, 200, { metadata: { resourceVersion: '1' }, items: repositories() });
    }
    const target = path.startsWith(FILES) ? files : revision;
    const known =
      path === `${FILES}/${name}` || path === `${PACKAGES}/${name}` || path === `${PACKAGES}/${name}/approval`;
    if (!known) return sendStatus(response, 404, 'NotFound', `${path.split('/').at(-1)} not found`);
    if (method === 'GET') return sendJson(response, 200, target);
    const next = JSON.parse(body);
    if (next.metadata.resourceVersion !== (target.metadata as { resourceVersion: string }).resourceVersion)
      return sendStatus(response, 409, 'Conflict', 'the object has been modified');
    const result = { result: { items: [{ image: 'set-labels:v1', exitCode: 0 }] } };
    const stored = { ...next, metadata: { ...next.metadata, resourceVersion: 'a2' } };
    if (target === revision) revision = stored;
    else files = { ...stored, status: { renderStatus: result } };
    return sendJson(response, 200, path.startsWith(FILES) ? files : revision);
  };
  await server.start();
  const { server: address } = server.access();
  const config = {
    clusters: [{ name: 'c', cluster: { server: address } }],
    users: [{ name: 'anna', user: { token: 's3cr3t' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'anna', namespace: 'team' } }],
    'current-context': 'c',
  };
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(config));
});
afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

test('the status of a new repository is waited for, also by a user who may not watch', async () => {
  const status = { conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }] };
  let lists = 0;
  repositories = () => {
    lists += 1;
    const metadata = { name: 'edge', namespace: 'team', uid: 'u', resourceVersion: '1' };
    return [{ metadata, spec: { git: { repo: '/edge.git' } }, ...(lists < 3 ? {} : { status }) }];
  };
  expect(await run('repo', 'get')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^edge .* True /m) });
  expect(lists).toBe(3);
});

const run = (...words: string[]) => runCli([...words, '--kubeconfig', join(folder, 'kubeconfig')]);
const writes = () => server.received.filter(({ method }: Received) => method !== 'GET');

test('where the server leaves gates to its clients, closed ones are not passed', async () => {
  const refused = await run('rpkg', 'approve', name);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('readiness conditions not met') });
  expect(refused.stderr).toContain('(server: http://127.0.0.1:');
  expect(writes()).toEqual([]);
  expect(await run('rpkg', 'condition', 'set', name, 'Tested', 'True')).toMatchObject({ code: 0, stderr: '' });
  expect(await run('rpkg', 'approve', name, '--reason', 'all is well')).toMatchObject({ stdout: `${name} approved\n` });
  expect(writes().map(({ method, path }) => `${method} ${path}`)).toEqual([
    `PUT ${PACKAGES}/${name}`,
    `PUT ${PACKAGES}/${name}/approval`,
  ]);
  expect(JSON.parse(writes()[1]?.body ?? '')).toMatchObject({ spec: { lifecycle: 'Published' } });
});

test('push accepts a folder that porchctl pulled, prints the output of functions and reports a lost race as a conflict', async () => {
  const pulled = join(folder, 'upf');
  expect((await run('rpkg', 'pull', name, pulled)).stderr).toContain('2 files, version a1');
  await writeFile(join(pulled, 'b.yaml'), 'b: 1\n');
  const push = await run('rpkg', 'push', name, pulled);
  expect(push).toMatchObject({ stdout: `${name} pushed\n` });
  expect(push.stderr).toBe('[RUNNING] "set-labels:v1"\n[PASS] "set-labels:v1"\n');
  expect((files.spec as { resources: object }).resources).toEqual({
    Kptfile: 'kind: Kptfile\n',
    'a.yaml': 'a: 1\n',
    'b.yaml': 'b: 1\n',
  });
  expect(await readFile(join(pulled, '.KptRevisionMetadata'), 'utf8')).toContain('resourceVersion: a2');
  files = { ...files, metadata: { ...(files.metadata as object), resourceVersion: 'a3' } };
  const backlog = await run('rpkg', 'push', name, pulled);
  expect(backlog).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has moved since it was pulled (from a2 to a3)'),
  });
});

test('--commit is refused if the server does not report commits; no output shows the token', async () => {
  const results = [await run('rpkg', 'reject', name, '--commit', 'abc'), await run('rpkg', 'get', 'blueprints.ufp.v1')];
  expect(results[0]).toMatchObject({ code: 1, stderr: expect.stringContaining('does not report the commit') });
  expect(results[1]).toMatchObject({ code: 1, stderr: expect.stringContaining('"blueprints.ufp.v1" not found') });
  expect(JSON.stringify(results)).not.toContain('s3cr3t');
});

test('a cluster in which no replica serves the package kinds is an error with the next step', async () => {
  const { handle } = server;
  server.handle = (request, response) => {
    if (!request.path.startsWith('/apis/porch.kpt.dev/')) return handle(request, response);
    response.writeHead(503, { 'content-type': 'text/plain' });
    response.end('service unavailable\n');
  };
  const { code, stderr } = await runCli(['rpkg', 'get', '--kubeconfig', join(folder, 'kubeconfig')]);
  expect(code).toBe(1);
  expect(stderr).toContain('service unavailable: "kubectl get apiservice v1alpha1.porch.kpt.dev" shows whether');
});

test('a list reports repositories that could not be read, and says how old the packages of the others are', async () => {
  const { handle } = server;
  const empty = { metadata: { resourceVersion: '1' }, items: [] };
  server.handle = (request, response) =>
    request.path.endsWith('/packagerevisions') ? sendJson(response, 200, empty) : handle(request, response);
  const repository = (repositoryName: string, status: object) => ({
    metadata: { name: repositoryName, namespace: 'team', uid: 'u', resourceVersion: '1' },
    spec: { git: { repo: 'https://git.example.com/a.git' } },
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Error', message: 'no access' }], ...status },
  });
  repositories = () => [repository('apps', { lastFullSyncTime: '2026-01-01T00:00:00Z' })];
  const shown = 'warning: repository apps: no access; its packages are shown as of 2026-01-01T00:00:00Z';
  expect(await run('rpkg', 'get')).toMatchObject({ code: 0, stderr: expect.stringContaining(shown) });
  repositories = () => [repository('apps', {})];
  expect(await run('rpkg', 'get')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('warning: repository apps: no access\n'),
  });
});
