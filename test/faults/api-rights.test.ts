import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/foundation/clock.ts';
import { addToken, hashOfToken } from '../../src/server/authentication/token-file.ts';
import { issueCertificate } from '../../src/server/certificates/issue-certificate.ts';
import { openPki } from '../../src/server/certificates/open-pki.ts';
import { eventually } from '../support/api/eventually.ts';
import type { Answer, KubeApi, KubeObject } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { mayDo, type Question, type RbacState } from './rbac-evaluator.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const HERE = 'rights';
const NAMED = 'the-one';
/** Requests under way at once. */
const LANES = 16;

let folder: string;
let up: RunningUp;
let admin: KubeApi;
const clients = new Map<string, KubeApi>();

const rbac = { apiGroup: 'rbac.authorization.k8s.io' };
const bind = (name: string, kind: string, role: string, subject: object) => ({
  metadata: { name },
  roleRef: { ...rbac, kind, name: role },
  subjects: [subject],
});

/** Users by name, with their groups, and what is bound to them besides what everybody has. */
const USERS: Readonly<
  Record<string, { groups?: string[]; namespaced?: [kind: string, role: string]; everywhere?: string }>
> = {
  stranger: {},
  viewer: { namespaced: ['ClusterRole', 'view'] },
  editor: { namespaced: ['ClusterRole', 'edit'] },
  'package-editor': { namespaced: ['ClusterRole', 'sluice:package-editor'] },
  approver: { namespaced: ['ClusterRole', 'sluice:approver'] },
  'local-admin': { namespaced: ['ClusterRole', 'admin'] },
  'of-one-name': { namespaced: ['Role', 'of-one-name'] },
  'watcher-of-all': { everywhere: 'view' },
  member: { groups: ['team'] },
  'system:serviceaccount:rights:robot': { groups: ['system:serviceaccounts', 'system:serviceaccounts:rights'] },
  root: { groups: ['system:masters'] },
};

async function create(path: string, body: object): Promise<void> {
  const { status, text } = await admin.post(path, body);
  expect(status, text).toBe(201);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rights-'));
  up = await RunningUp.start(join(folder, 'data'));
  admin = up.api;
  for (const name of [HERE, 'elsewhere']) await create('/api/v1/namespaces', { metadata: { name } });
  const here = `${RBAC}/namespaces/${HERE}`;
  const all = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };
  await create(`${here}/roles`, { metadata: { name: 'of-one-name' }, rules: [{ ...all, resourceNames: [NAMED] }] });
  const approvals = { apiGroups: ['porch.kpt.dev'], resources: ['*/approval'], verbs: ['update'] };
  await create(`${here}/roles`, { metadata: { name: 'team' }, rules: [{ ...all, verbs: ['list'] }, approvals] });
  await create(`${here}/rolebindings`, bind('team', 'Role', 'team', { ...rbac, kind: 'Group', name: 'team' }));
  const robot = { kind: 'ServiceAccount', namespace: HERE, name: 'robot' };
  await create(`${here}/rolebindings`, bind('robot', 'ClusterRole', 'edit', robot));
  for (const [name, { groups = [], namespaced, everywhere }] of Object.entries(USERS)) {
    const token = await addToken(up.folder.tokens, { user: name, groups }, systemClock);
    clients.set(name, admin.as({ token }));
    const subject = { ...rbac, kind: 'User', name };
    if (namespaced !== undefined) await create(`${here}/rolebindings`, bind(name, ...namespaced, subject));
    if (everywhere !== undefined)
      await create(`${RBAC}/clusterrolebindings`, bind(name, 'ClusterRole', everywhere, subject));
  }
  // The last token and the last binding are known once they have an effect.
  await allowed(() => clientOf('root').get('/api/v1/namespaces'));
  await allowed(() => clientOf('watcher-of-all').get('/api/v1/configmaps'));
});

afterAll(async () => {
  for (const client of clients.values()) client.close();
  const failures = up.ownFailures();
  await up.end();
  await rm(folder, { recursive: true });
  expect(failures).toEqual([]);
});

/** Waits until the server lets somebody do something. */
async function allowed(ask: () => Promise<Answer>): Promise<void> {
  await eventually(ask, ({ status }) => status < 300);
}

function clientOf(user: string): KubeApi {
  const client = clients.get(user);
  if (client === undefined) throw new Error(`there is no user ${user}`);
  return client;
}

interface Resource {
  readonly groupVersion: string;
  /** With its sub-resource. */
  readonly resource: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

async function resources(): Promise<Resource[]> {
  const { body } = await admin.get<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis');
  const versions = ['v1', ...body.groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion))];
  const found: Resource[] = [];
  for (const groupVersion of versions) {
    const answer = await admin.get<{ resources: { name: string; namespaced: boolean; verbs: string[] }[] }>(
      `${groupVersion === 'v1' ? '/api' : '/apis'}/${groupVersion}`,
    );
    for (const { name, ...rest } of answer.body.resources) found.push({ groupVersion, resource: name, ...rest });
  }
  return found;
}

interface Attempt {
  readonly method: string;
  readonly url: string;
  readonly question: Omit<Question, 'user' | 'groups'>;
}

const METHODS: Readonly<Record<string, string>> = {
  ...{ get: 'GET', list: 'GET', watch: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH' },
  ...{ delete: 'DELETE', deletecollection: 'DELETE' },
};

/** Requests for every verb and place of a resource that change nothing, even if they are allowed. */
function* attemptsOn({ groupVersion, resource, namespaced, verbs }: Resource): Generator<Attempt> {
  const [plural = '', sub] = resource.split('/');
  const slash = groupVersion.indexOf('/');
  const group = slash < 0 ? '' : groupVersion.slice(0, slash);
  const prefix = `${slash < 0 ? '/api' : '/apis'}/${groupVersion}`;
  for (const verb of verbs) {
    const ofMany = ['list', 'watch', 'create', 'deletecollection'].includes(verb);
    // Some resources are created at a name's sub-resource, and reviews are answered anywhere.
    const names = ofMany && sub === undefined ? [''] : ['nobody', NAMED];
    const namespaces = !namespaced
      ? ['']
      : ofMany && verb !== 'create' && verb !== 'deletecollection'
        ? [HERE, 'elsewhere', '']
        : [HERE, 'elsewhere'];
    for (const namespace of namespaces)
      for (const name of names) {
        const place = namespace === '' ? '' : `/namespaces/${namespace}`;
        const path = [
          `${prefix}${place}/${plural}`,
          ...(name === '' ? [] : [name]),
          ...(sub === undefined ? [] : [sub]),
        ].join('/');
        // A namespace is in the namespace of its name.
        const within = plural === 'namespaces' && group === '' && name !== '' ? name : namespace;
        // The selector cannot be read, so that nothing begins or goes.
        const query = ofMany && verb !== 'create' ? `?labelSelector=%3D${verb === 'watch' ? '&watch=true' : ''}` : '';
        yield {
          method: METHODS[verb] ?? verb.toUpperCase(),
          url: `${path}${query}`,
          question: { verb, group, resource, namespace: within, name },
        };
      }
  }
}

/** What the answer says of the right to ask: other refusals come from the rules of the kind. */
function decisionOf({ status, text }: Answer<unknown>): string {
  if (status === 401) return 'unknown';
  if (status === 403 && /"message":"[^"]*(\\"[^"]*)*User \\"[^"]*\\" cannot /.test(text)) return 'refused';
  return status >= 500 ? `failed ${status}` : 'allowed';
}

async function decide(client: KubeApi, { method, url }: Attempt): Promise<string> {
  const body = ['POST', 'PUT', 'PATCH'].includes(method) ? '{' : undefined;
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return decisionOf(
    await client.send(method, url, body === undefined ? {} : { body, headers: { 'content-type': type } }),
  );
}

async function inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

async function rbacState(): Promise<RbacState> {
  const all = async (resource: string, kind: string) =>
    (await admin.list(`${RBAC}/${resource}`)).body.items.map((item): KubeObject => ({ ...item, kind }));
  return {
    roles: [...(await all('roles', 'Role')), ...(await all('clusterroles', 'ClusterRole'))],
    bindings: [
      ...(await all('rolebindings', 'RoleBinding')),
      ...(await all('clusterrolebindings', 'ClusterRoleBinding')),
    ],
  };
}

describe('rights', () => {
  test('are what the roles say, for every user, verb, resource and place', { timeout: 180_000 }, async () => {
    const state = await rbacState();
    const attempts = (await resources()).flatMap((resource) => [...attemptsOn(resource)]);
    for (const path of [
      '/metrics',
      '/version',
      '/livez',
      '/readyz',
      '/openapi/v2',
      '/openapi/v3',
      '/api',
      '/apis',
      '/logs',
    ])
      attempts.push({ method: 'GET', url: path, question: { verb: 'get', path } });
    const wrong: string[] = [];
    const counts = new Map<string, number>();
    const cases = Object.keys(USERS).flatMap((user) => attempts.map((attempt) => ({ user, attempt })));
    await inLanes(cases, async ({ user, attempt }) => {
      const groups = [...(USERS[user]?.groups ?? []), 'system:authenticated'];
      const expected = mayDo(state, { ...attempt.question, user, groups }) ? 'allowed' : 'refused';
      const decision = await decide(clientOf(user), attempt);
      counts.set(`${user} ${decision}`, (counts.get(`${user} ${decision}`) ?? 0) + 1);
      // Health is told to everybody.
      if (decision !== expected && !['/livez', '/readyz'].includes(attempt.url))
        wrong.push(`${user}: ${attempt.method} ${attempt.url}: ${decision}, not ${expected}`);
    });
    expect(wrong).toEqual([]);
    expect(cases.length).toBeGreaterThan(3000);
    for (const user of Object.keys(USERS).filter((name) => name !== 'root')) {
      expect(counts.get(`${user} refused`), user).toBeGreaterThan(0);
      expect(counts.get(`${user} allowed`), user).toBeGreaterThan(0);
    }
    expect(counts.get('root refused')).toBeUndefined();
  });

  test('need somebody who has them', { timeout: 120_000 }, async () => {
    const expired = `sluice_${'e'.repeat(43)}`;
    const line = `sha256:${hashOfToken(expired)},root,,"system:masters",2020-01-01T00:00:00Z\n`;
    await appendFile(up.folder.tokens, line);
    const attempts = (await resources()).flatMap((resource) => [...attemptsOn(resource)]);
    for (const identity of [{}, { token: 'sluice_unknown' }, { token: expired }]) {
      const client = admin.as(identity);
      const decisions = new Set<string>();
      await inLanes(attempts, async (attempt) => {
        decisions.add(await decide(client, attempt));
      });
      expect([...decisions]).toEqual(['unknown']);
      client.close();
    }
  });
});

describe('nobody becomes somebody else', () => {
  const asks = (client: KubeApi, headers: Record<string, string | string[]>) =>
    client.get(`/api/v1/namespaces/${HERE}/secrets`, headers);
  const FRONT_PROXY = {
    'x-remote-user': 'root',
    'x-remote-group': 'system:masters',
    'x-remote-uid': '1',
    'x-forwarded-user': 'root',
    'x-forwarded-for': '127.0.0.1',
    'x-original-url': '/version',
    'x-http-method-override': 'GET',
  };

  test('by the headers of a proxy in front', async () => {
    const nobody = admin.as({});
    expect((await asks(nobody, FRONT_PROXY)).status).toBe(401);
    nobody.close();
    expect((await asks(clientOf('stranger'), FRONT_PROXY)).status).toBe(403);
    const me = await clientOf('stranger').send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      body: {},
      headers: { ...FRONT_PROXY, 'content-type': 'application/json' },
    });
    expect(me.body.status).toMatchObject({ userInfo: { username: 'stranger', groups: ['system:authenticated'] } });
  });

  test('by impersonation without the right to it', async () => {
    for (const headers of [
      { 'impersonate-user': 'root' },
      { 'impersonate-user': 'editor', 'impersonate-group': 'system:masters' },
      { 'impersonate-user': 'system:serviceaccount:rights:robot' },
      { 'impersonate-user': 'local-admin', 'impersonate-uid': '1' },
    ])
      for (const user of ['stranger', 'editor', 'local-admin'])
        expect(await asks(clientOf(user), headers), user).toMatchObject({
          status: 403,
          text: expect.stringContaining('cannot impersonate resource'),
        });
    // A group without a user is nobody.
    expect((await asks(clientOf('root'), { 'impersonate-group': 'system:masters' })).status).toBe(400);
  });

  test('by the right to impersonate some users', async () => {
    const rules = [{ apiGroups: [''], resources: ['users'], resourceNames: ['viewer'], verbs: ['impersonate'] }];
    await create(`${RBAC}/clusterroles`, { metadata: { name: 'stand-in' }, rules });
    const subject = { ...rbac, kind: 'User', name: 'stranger' };
    await create(`${RBAC}/clusterrolebindings`, bind('stand-in', 'ClusterRole', 'stand-in', subject));
    const list = (headers: Record<string, string>) =>
      clientOf('stranger')
        .get(`/api/v1/namespaces/${HERE}/configmaps`, headers)
        .then(({ status }) => status);
    await eventually(
      () => list({ 'impersonate-user': 'viewer' }),
      (status) => status === 200,
    );
    expect(await list({ 'impersonate-user': 'editor' })).toBe(403);
    expect(await list({ 'impersonate-user': 'viewer', 'impersonate-group': 'system:masters' })).toBe(403);
    expect(await list({ 'impersonate-user': 'viewer', 'impersonate-extra-scopes': 'all' })).toBe(403);
  });

  test('by a certificate that our authority has not signed, or not for now', async () => {
    const now = Date.now();
    const valid = { notBefore: now - 60_000, notAfter: now + 3_600_000 };
    const pki = await openPki({
      folder: up.folder.pki,
      names: ['127.0.0.1'],
      clock: systemClock,
      onNote: () => undefined,
    });
    const request = { commonName: 'root', organisations: ['system:masters'], usage: 'client' } as const;
    const foreign = await issueCertificate({ commonName: 'sluice-ca', usage: 'authority', ...valid });
    const proofs = {
      'of another authority': await issueCertificate({ ...request, ...valid }, foreign),
      'of itself': await issueCertificate({ ...request, ...valid }),
      'of the server': pki.server,
    };
    for (const [what, { certificate, key }] of Object.entries(proofs)) {
      const client = admin.as({ cert: certificate, key });
      expect((await client.get('/api')).status, what).toBe(401);
      client.close();
    }
    const { certificate, key } = await pki.issueClient('viewer', [], 3_600_000);
    const client = admin.as({ cert: certificate, key });
    expect((await client.get(`/api/v1/namespaces/${HERE}/configmaps`)).status).toBe(200);
    expect((await asks(client, {})).status).toBe(403);
    client.close();
  });
});

describe('nobody gets more than he has', () => {
  const roles = `${RBAC}/namespaces/${HERE}/roles`;
  const bindings = `${RBAC}/namespaces/${HERE}/rolebindings`;
  const all = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  const self = { ...rbac, kind: 'User', name: 'local-admin' };
  const forbidden = expect.objectContaining({ status: 403 });

  test('by roles and bindings that an administrator of a namespace writes', async () => {
    const client = clientOf('local-admin');
    expect(
      (
        await client.post(roles, {
          metadata: { name: 'fine' },
          rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
        })
      ).status,
    ).toBe(201);
    const climbs: (() => Promise<Answer>)[] = [
      () => client.post(roles, { metadata: { name: 'all' }, rules: all }),
      () => client.post(`${roles}?dryRun=All`, { metadata: { name: 'all' }, rules: all }),
      () => client.patch(`${roles}/fine`, { rules: all }),
      () =>
        client.apply(
          `${roles}/fine`,
          'me',
          { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'fine' }, rules: all },
          '&force=true',
        ),
      () =>
        client.post(roles, {
          metadata: { name: 'pods' },
          rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
        }),
      () =>
        client.post(roles, {
          metadata: { name: 'up' },
          rules: [{ ...all[0], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['escalate'] }],
        }),
      () => client.post(bindings, bind('climb', 'ClusterRole', 'cluster-admin', self)),
      () =>
        client.patch(`${bindings}/team`, {
          subjects: [self, { ...rbac, kind: 'Group', name: 'system:authenticated' }],
        }),
      () => client.post(`${RBAC}/clusterroles`, { metadata: { name: 'x' }, rules: [] }),
      () => client.post(`${RBAC}/clusterrolebindings`, bind('x', 'ClusterRole', 'view', self)),
      () => client.post(`${RBAC}/namespaces/elsewhere/rolebindings`, bind('x', 'ClusterRole', 'view', self)),
    ];
    for (const [index, climb] of climbs.entries()) expect(await climb(), `way ${index}`).toEqual(forbidden);
    const twice = await client.patch(`${bindings}/local-admin`, {
      roleRef: { ...rbac, kind: 'ClusterRole', name: 'cluster-admin' },
    });
    expect([403, 422]).toContain(twice.status);
    expect(
      (await client.post(bindings, bind('helper', 'ClusterRole', 'edit', { ...rbac, kind: 'User', name: 'friend' })))
        .status,
    ).toBe(201);
  });

  test('by a role that gathers others', async () => {
    const rules = [
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['clusterroles'],
        verbs: ['create', 'get', 'patch', 'update'],
      },
    ];
    await create(`${RBAC}/clusterroles`, { metadata: { name: 'role-writer' }, rules });
    await create(
      `${RBAC}/clusterrolebindings`,
      bind('role-writer', 'ClusterRole', 'role-writer', { ...rbac, kind: 'User', name: 'viewer' }),
    );
    const client = clientOf('viewer');
    const write = (name: string, more: object) => client.post(`${RBAC}/clusterroles`, { metadata: { name }, ...more });
    await allowed(() => write('empty', { rules: [] }));
    const clusterRoleSelectors = [{ matchLabels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } }];
    expect(await write('gathers', { rules: [], aggregationRule: { clusterRoleSelectors } })).toEqual(forbidden);
    expect(await client.patch(`${RBAC}/clusterroles/empty`, { aggregationRule: { clusterRoleSelectors } })).toEqual(
      forbidden,
    );
    expect(await client.patch(`${RBAC}/clusterroles/role-writer`, { rules: all })).toEqual(forbidden);
    expect((await client.patch(`${RBAC}/clusterroles/empty`, { rules })).status).toBe(200);
  });
});
