import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { addToken } from '../../src/server/authentication/token-file.ts';
import { eventually } from '../support/api/eventually.ts';
import { type KubeApi, MERGE_PATCH } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { sluice } from '../support/cli.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const PORCH = '/apis/porch.kpt.dev/v1alpha1/namespaces/default';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
const MEBIBYTE = 1024 * 1024;
const MAX_OBJECTS = 40;

let folder: string;
let up: RunningUp;
let mallory: KubeApi;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-attack-'));
  up = await RunningUp.start(join(folder, 'data'), { words: ['--namespace-objects', String(MAX_OBJECTS)] });
  const token = await addToken(up.folder.tokens, { user: 'mallory', groups: [] }, systemClock);
  mallory = up.api.as({ token });
  const rbac = 'rbac.authorization.k8s.io';
  const { status, text } = await up.api.post(BINDINGS, {
    metadata: { name: 'mallory' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup: rbac, kind: 'User', name: 'mallory' }],
  });
  expect(status, text).toBe(201);
  await eventually(
    () => mallory.get(MAPS),
    ({ status: found }) => found === 200,
  );
});

afterAll(async () => {
  mallory.close();
  expect(up.ownFailures()).toEqual([]);
  expect(await up.end()).toBe(0);
  await rm(folder, { recursive: true });
});

/** A PATCH of a user whose body begins and never ends. */
async function openPatch(user: KubeApi): Promise<TLSSocket> {
  const { url, ca } = user;
  const target = connectPlain({ host: url.hostname, port: Number(url.port) });
  const socket = connect({ socket: target, ...(ca === undefined ? {} : { ca }), servername: 'localhost' });
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  const own = Object.entries(user.headers).map(([name, value]) => `${name}: ${value}`);
  const head = ['Host: x', ...own, `Content-Type: ${MERGE_PATCH}`, 'Content-Length: 100000', '', '{"data":'];
  socket.write(`PATCH ${MAPS}/victim HTTP/1.1\r\n${head.join('\r\n')}`);
  return socket;
}

describe('a user who sends slowly or much', () => {
  test('does not keep others from writing: 250 open PATCHes', async () => {
    await up.api.post(MAPS, { metadata: { name: 'victim' }, data: {} });
    const sockets = await Promise.all(Array.from({ length: 250 }, () => openPatch(mallory)));
    await eventually(
      () => up.api.get('/metrics'),
      ({ text }) => text.includes(`sluice_request_body_bytes ${250 * '{"data":'.length}`),
    );
    expect((await up.api.patch(`${MAPS}/victim`, { data: { a: 'b' } })).status).toBe(200);
    expect((await mallory.patch(`${MAPS}/victim`, { data: { a: 'c' } })).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await up.api.delete(`${MAPS}/victim`);
  });

  test('gets an error that names the limit', async () => {
    const body = { metadata: { name: 'large' }, data: { a: 'x'.repeat(7 * MEBIBYTE) } };
    const { status, body: answer } = await mallory.post(MAPS, body);
    expect([status, answer]).toMatchObject([
      413,
      { reason: 'RequestEntityTooLarge', message: 'Request entity too large: limit is 6291456' },
    ]);
    const many = {
      metadata: { name: 'many' },
      data: Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [i, ''])),
    };
    expect((await mallory.post(MAPS, many)).body.message).toBe(
      'Request entity too large: the object would have more than 8000 values',
    );
  });

  test('gets the same error through kubectl', skipFor(!hasKubectl() && 'kubectl is not installed'), async () => {
    const file = join(folder, 'large.json');
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'large' },
      data: { a: 'x'.repeat(7 * MEBIBYTE) },
    };
    await writeFile(file, JSON.stringify(object));
    const kubectl = new Kubectl(up.folder.kubeconfig, join(folder, 'cache'));
    for (const verb of ['create', 'apply --server-side']) {
      const { code, stderr } = await kubectl.run(`${verb} --validate=false -f ${file}`);
      expect([code, stderr]).toEqual([1, expect.stringContaining('Request entity too large: limit is 6291456')]);
    }
  });

  test('has a quota of objects, in the words of Kubernetes, and others their own', async () => {
    const created = { status: 201, text: '' };
    for (let index = 0; created.status === 201 && index <= MAX_OBJECTS; index += 1)
      Object.assign(created, await mallory.post(MAPS, { metadata: { name: `m${index}` } }));
    expect(created.status).toBe(403);
    expect(JSON.parse(created.text)).toMatchObject({
      reason: 'Forbidden',
      message: expect.stringMatching(
        /^configmaps "m\d+" is forbidden: exceeded quota: sluice-namespace, requested: objects=1, used: objects=40, limited: objects=40$/,
      ),
    });
    expect((await up.api.post('/api/v1/namespaces', { metadata: { name: 'other' } })).status).toBe(201);
    expect((await up.api.post('/api/v1/namespaces/other/configmaps', { metadata: { name: 'a' } })).status).toBe(201);
    expect((await mallory.get(`${MAPS}/m0`)).status).toBe(200);
    const all = await mallory.delete(MAPS);
    expect(all.status, all.text).toBe(200);
    expect((await up.api.get('/metrics')).text).toContain('sluice_quota_exceeded_total 1');
  });
});

describe('a package', () => {
  const repository = () => join(folder, 'packages.git');
  const work = () => join(folder, 'work');
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=m', '-c', 'user.email=m@example.com', '-C', work(), ...words], {
      stdio: 'pipe',
    });

  beforeAll(async () => {
    execFileSync('git', ['init', '-q', '--bare', '-b', 'main', repository()]);
    execFileSync('git', ['clone', '-q', repository(), work()], { stdio: 'ignore' });
    await writeFile(join(work(), 'README.md'), 'packages\n');
    git('checkout', '-q', '-B', 'main');
    git('add', '.');
    git('commit', '-q', '-m', 'start');
    git('push', '-q', 'origin', 'main');
    const spec = { type: 'git', git: { repo: repository(), branch: 'main' } };
    expect((await up.api.post(REPOSITORIES, { metadata: { name: 'packages' }, spec })).status).toBe(201);
  });

  test('with 9,000 gates and conditions that was pushed is stored, shown as a problem, and cannot be proposed', async () => {
    const numbers = Array.from({ length: 9000 }, (_, index) => index);
    const kptfile = [
      'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\ninfo:\n  readinessGates:\n',
      ...numbers.map((index) => `  - conditionType: t${index}\n`),
      'status:\n  conditions:\n',
      ...numbers.map((index) => `  - type: t${index}\n    status: "True"\n`),
    ].join('');
    git('checkout', '-q', '-b', 'drafts/shop/v1');
    await mkdir(join(work(), 'shop'));
    await writeFile(join(work(), 'shop', 'Kptfile'), kptfile);
    git('add', '.');
    git('commit', '-q', '-m', 'shop');
    git('push', '-q', 'origin', 'drafts/shop/v1');
    await up.api.patch(`${REPOSITORIES}/packages`, {
      metadata: { annotations: { 'sluice.dev/sync-requested-at': '1' } },
    });
    const name = 'packages.shop.v1';
    const found = await eventually(
      () => up.api.get(`${PORCH}/packagerevisions/${name}`),
      ({ status }) => status === 200,
    );
    expect(found.text).toContain('The file has more than 262144 bytes');
    const proposal = await up.api.patch(`${PORCH}/packagerevisions/${name}`, { spec: { lifecycle: 'Proposed' } });
    expect([proposal.status, proposal.text]).toEqual([403, expect.stringContaining('cannot be read')]);
  });

  test('that is too large is refused by the server, and the command reports it', async () => {
    const task = { type: 'init', init: { description: 'x' } };
    const spec = { repository: 'packages', packageName: 'big', workspaceName: 'v1', tasks: [task] };
    const made = await eventually(
      () => up.api.post(`${PORCH}/packagerevisions`, { metadata: { namespace: 'default' }, spec }),
      ({ status }) => status === 201,
    );
    const { name } = made.body.metadata;
    const local = join(folder, 'big');
    const server = ['--kubeconfig', up.folder.kubeconfig];
    const pulled = await sluice(['rpkg', 'pull', name, local, ...server]);
    expect(pulled.code, pulled.stderr).toBe(0);
    await writeFile(join(local, 'large.txt'), 'x'.repeat(7 * MEBIBYTE));
    const { code, stderr } = await sluice(['rpkg', 'push', name, local, ...server]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Request entity too large: limit is 6291456')]);
  });
});
