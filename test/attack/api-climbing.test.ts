import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { issueCertificate } from '../../src/server/certificates/issue-certificate.ts';
import { openPki } from '../../src/server/certificates/open-pki.ts';
import { allowed, bind, HERE, RBAC, rbac, useUsers } from '../faults/users-fixture.ts';
import { eventually } from '../support/api/eventually.ts';
import type { Answer, KubeApi } from '../support/api/kube-api.ts';

const users = useUsers();
const clientOf = (user: string) => users.current.as(user);
const create = (path: string, body: object) => users.current.create(path, body);

describe('no user can act as another one', () => {
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
    const anonymous = users.current.admin.as({});
    expect((await asks(anonymous, FRONT_PROXY)).status).toBe(401);
    anonymous.close();
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
    // A group without a user is anonymous.
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
      folder: users.current.up.folder.pki,
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
      const client = users.current.admin.as({ cert: certificate, key });
      expect((await client.get('/api')).status, what).toBe(401);
      client.close();
    }
    const { certificate, key } = await pki.issueClient('viewer', [], 3_600_000);
    const client = users.current.admin.as({ cert: certificate, key });
    expect((await client.get(`/api/v1/namespaces/${HERE}/configmaps`)).status).toBe(200);
    expect((await asks(client, {})).status).toBe(403);
    client.close();
  });
});

describe('no user can gain rights', () => {
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

  test('by applying what is not there', async () => {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'patch'] }];
    await create(roles, { metadata: { name: 'patcher' }, rules });
    await create(bindings, bind('patcher', 'Role', 'patcher', { ...rbac, kind: 'User', name: 'approver' }));
    const maps = `/api/v1/namespaces/${HERE}/configmaps`;
    await create(maps, { metadata: { name: 'applied' } });
    const apply = (name: string) =>
      clientOf('approver').apply(`${maps}/${name}`, 'me', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    await allowed(() => apply('applied'));
    expect(await apply('not-there')).toMatchObject({ status: 403, text: expect.stringContaining('cannot create') });
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

describe('mapping signatures to users requires a right', () => {
  const maps = `/api/v1/namespaces/${HERE}/configmaps`;
  const list = (text: string) => ({ data: { allowed_signers: text } });
  const refused = {
    status: 403,
    text: expect.stringContaining('says whose signature is whose and takes the verb \\"update\\" on repositories'),
  };

  test('by creating, changing or deleting the ConfigMap with the keys of people', async () => {
    const editor = clientOf('editor');
    const admin = clientOf('local-admin');
    await allowed(() => editor.post(maps, { metadata: { name: 'ordinary' }, data: { a: 'b' } }));
    expect(await editor.post(maps, { metadata: { name: 'people' }, ...list('anna ssh-ed25519 x') })).toMatchObject(
      refused,
    );
    await allowed(() => admin.post(maps, { metadata: { name: 'people' }, ...list('anna ssh-ed25519 x') }));
    for (const path of [`${maps}/people`, `${maps}/ordinary`]) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: path.slice(maps.length + 1) } };
      const mine = list('anna ssh-ed25519 y');
      expect(await editor.patch(path, mine)).toMatchObject(refused);
      expect(await editor.send('PUT', path, { body: { ...body, ...mine } })).toMatchObject(refused);
      expect(await editor.apply(path, 'me', { ...body, ...mine }, '&force=true')).toMatchObject(refused);
    }
    expect(await editor.patch(`${maps}/people`, { data: { allowed_signers: null } })).toMatchObject(refused);
    expect(await editor.send('DELETE', `${maps}/people`)).toMatchObject(refused);
    expect((await editor.send('DELETE', maps)).status).toBe(403);
    expect((await admin.get(`${maps}/people`)).body).toMatchObject(list('anna ssh-ed25519 x'));
    // What else there is in it, editors may change.
    expect((await editor.patch(`${maps}/people`, { metadata: { labels: { a: 'b' } } })).status).toBe(200);
    expect((await admin.patch(`${maps}/people`, list('anna ssh-ed25519 z'))).status).toBe(200);
  });

  test('by saying who is which user of the Git host', async () => {
    const editor = clientOf('editor');
    const admin = clientOf('local-admin');
    const users = (text: string) => ({ data: { host_users: text } });
    const refusedToo = {
      status: 403,
      text: expect.stringContaining(
        'its key host_users says who is which user of the Git host and takes the verb \\"update\\" on repositories',
      ),
    };
    expect(await editor.post(maps, { metadata: { name: 'users' }, ...users('eve-h=anna') })).toMatchObject(refusedToo);
    await allowed(() => admin.post(maps, { metadata: { name: 'users' }, ...users('eve-h=eve') }));
    expect(await editor.patch(`${maps}/users`, users('eve-h=anna'))).toMatchObject(refusedToo);
    expect(await editor.send('DELETE', `${maps}/users`)).toMatchObject(refusedToo);
    expect((await editor.patch(`${maps}/users`, { data: { a: 'b' } })).status).toBe(200);
  });
});
