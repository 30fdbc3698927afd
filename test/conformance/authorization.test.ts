import { describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { configMap, failure, made, pathOf, usePlace } from './support/place.ts';

const place = usePlace();
const RBAC = 'rbac.authorization.k8s.io/v1';
const REVIEWS = 'authorization.k8s.io/v1';
const rbac = { apiGroup: 'rbac.authorization.k8s.io' };

/** The headers of a request as another user, whom the administrator may impersonate. */
const as = (user: string, ...groups: string[]) => ({
  'impersonate-user': user,
  ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
});

async function grant(name: string, rules: object[]): Promise<void> {
  made(await place.api.post(place.path(`${RBAC}/roles`), { metadata: { name }, rules }));
  const subjects = [{ ...rbac, kind: 'User', name }];
  const binding = { metadata: { name }, roleRef: { ...rbac, kind: 'Role', name }, subjects };
  made(await place.api.post(place.path(`${RBAC}/rolebindings`), binding));
}

describe('who has no rights', () => {
  test('gets the reason of the refusal', async () => {
    const get = (path: string) => place.api.get(path, as('unbound'));
    const { namespace } = place;
    expect(await get(place.path('configmaps'))).toEqual(
      failure(403, 'Forbidden', {
        message: `configmaps is forbidden: User "unbound" cannot list resource "configmaps" in API group "" in the namespace "${namespace}"`,
        details: { kind: 'configmaps' },
      }),
    );
    expect(await get(place.path('coordination.k8s.io/v1/leases', 'x'))).toEqual(
      failure(403, 'Forbidden', {
        message: `leases.coordination.k8s.io "x" is forbidden: User "unbound" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "${namespace}"`,
        details: { name: 'x', group: 'coordination.k8s.io', kind: 'leases' },
      }),
    );
    expect(await get('/api/v1/namespaces')).toEqual(
      failure(403, 'Forbidden', {
        message:
          'namespaces is forbidden: User "unbound" cannot list resource "namespaces" in API group "" at the cluster scope',
      }),
    );
    expect(await get('/metrics')).toEqual(
      failure(403, 'Forbidden', { message: expect.stringContaining('User "unbound" cannot get path "/metrics"') }),
    );
  });

  test('cannot detect objects by other responses', async () => {
    made(await place.api.post(place.path('configmaps'), configMap('there')));
    for (const name of ['there', 'not-there']) {
      expect((await place.api.get(place.path('configmaps', name), as('unbound'))).status).toBe(403);
      const headers = { ...as('unbound'), 'content-type': 'application/json' };
      for (const method of ['PUT', 'PATCH', 'DELETE'])
        expect((await place.api.send(method, place.path('configmaps', name), { headers, body: '{' })).status).toBe(403);
    }
    expect((await place.api.get('/apis/unbound.example.com/v1/things', as('unbound'))).status).toBe(403);
  });
});

describe('a role', () => {
  test('grants its rules, in its namespace', async () => {
    await grant('reader', [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]);
    const list = (path: string) => place.api.get(path, as('reader'));
    await eventually(
      () => list(place.path('configmaps')),
      ({ status }) => status === 200,
    );
    expect((await list('/api/v1/configmaps')).status).toBe(403);
    expect((await list('/api/v1/namespaces/default/configmaps')).status).toBe(403);
    expect((await list(place.path('secrets'))).status).toBe(403);
    const headers = { ...as('reader'), 'content-type': 'application/json' };
    expect((await place.api.send('POST', place.path('configmaps'), { headers, body: configMap('x') })).status).toBe(
      403,
    );
    made(await place.api.delete(place.path(`${RBAC}/rolebindings`, 'reader')));
    await eventually(
      () => list(place.path('configmaps')),
      ({ status }) => status === 403,
    );
  });

  test('can be for one name only', async () => {
    await grant('namer', [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['named'], verbs: ['*'] }]);
    for (const name of ['named', 'other']) made(await place.api.post(place.path('configmaps'), configMap(name)));
    const get = (path: string) => place.api.get(path, as('namer'));
    await eventually(
      () => get(place.path('configmaps', 'named')),
      ({ status }) => status === 200,
    );
    expect((await get(place.path('configmaps', 'other'))).status).toBe(403);
    expect((await get(place.path('configmaps'))).status).toBe(403);
    expect((await get(`${place.path('configmaps')}?fieldSelector=metadata.name%3Dnamed`)).status).toBe(200);
    // A create names nothing yet.
    const headers = { ...as('namer'), 'content-type': 'application/json' };
    expect((await place.api.send('POST', place.path('configmaps'), { headers, body: configMap('named') })).status).toBe(
      403,
    );
  });

  test('grants no user more than its writer has', async () => {
    const own = {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      verbs: ['create', 'get', 'patch'],
    };
    await grant('climber', [own]);
    const send = (method: string, path: string, body: object) =>
      place.api.send(method, path, { body, headers: { ...as('climber'), 'content-type': 'application/json' } });
    const roles = place.path(`${RBAC}/roles`);
    await eventually(
      () => send('POST', roles, { metadata: { generateName: 'none-' }, rules: [] }),
      ({ status }) => status === 201,
    );
    const secrets = {
      metadata: { name: 'secrets' },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
    };
    expect(await send('POST', roles, secrets)).toEqual(
      failure(403, 'Forbidden', {
        message: expect.stringContaining('is attempting to grant RBAC permissions not currently held'),
      }),
    );
    expect((await send('PATCH', `${roles}/climber`, [{ op: 'add', path: '/rules/-', value: own }])).status).not.toBe(
      200,
    );
    const binding = (kind: string, name: string) => ({
      metadata: { generateName: 'bound-' },
      roleRef: { ...rbac, kind, name },
      subjects: [{ ...rbac, kind: 'User', name: 'climber' }],
    });
    const bindings = place.path(`${RBAC}/rolebindings`);
    expect((await send('POST', bindings, binding('ClusterRole', 'cluster-admin'))).status).toBe(403);
    expect((await send('POST', bindings, binding('Role', 'climber'))).status).toBe(201);
  });

  test('of a binding cannot be exchanged', async () => {
    await grant('fixed', []);
    const roleRef = { ...rbac, kind: 'ClusterRole', name: 'view' };
    expect(await place.api.patch(place.path(`${RBAC}/rolebindings`, 'fixed'), { roleRef })).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('roleRef') }),
    );
  });
});

describe('reviews', () => {
  const review = (resource: string, spec: object, headers = {}, namespace = '') =>
    place.api.send('POST', pathOf(`${REVIEWS}/${resource}`, namespace), {
      body: { spec },
      headers: { 'content-type': 'application/json', ...headers },
    });
  const attributes = () => ({ verb: 'list', resource: 'configmaps', namespace: place.namespace });

  test('report the rights of the caller', async () => {
    const own = await review('selfsubjectaccessreviews', { resourceAttributes: { ...attributes(), verb: '*' } });
    expect(own).toMatchObject({ status: 201, body: { kind: 'SelfSubjectAccessReview', status: { allowed: true } } });
    const refused = await review(
      'selfsubjectaccessreviews',
      { resourceAttributes: attributes() },
      as('unbound', 'system:authenticated'),
    );
    expect(refused).toMatchObject({ status: 201, body: { status: { allowed: false } } });
    const path = await review('selfsubjectaccessreviews', { nonResourceAttributes: { path: '/metrics', verb: 'get' } });
    expect(path).toMatchObject({ status: 201, body: { status: { allowed: true } } });
    expect(await review('selfsubjectaccessreviews', {})).toEqual(failure(422, 'Invalid'));
  });

  test('report what another user may do, to users who may create them', async () => {
    await grant('reviewed', [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }]);
    const spec = { user: 'reviewed', resourceAttributes: attributes() };
    await eventually(
      () => review('subjectaccessreviews', spec),
      ({ body }) => (body.status as { allowed: boolean }).allowed,
    );
    const local = await review('localsubjectaccessreviews', spec, {}, place.namespace);
    expect(local).toMatchObject({ status: 201, body: { status: { allowed: true } } });
    const secrets = { ...spec, resourceAttributes: { ...attributes(), resource: 'secrets' } };
    expect(await review('subjectaccessreviews', secrets)).toMatchObject({ body: { status: { allowed: false } } });
    expect((await review('subjectaccessreviews', spec, as('unbound', 'system:authenticated'))).status).toBe(403);
  });

  test('list the rules that one has', async () => {
    await grant('ruled', [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }]);
    await eventually(
      () => review('selfsubjectrulesreviews', { namespace: place.namespace }, as('ruled', 'system:authenticated')),
      ({ text }) => text.includes('"resources":["configmaps"]'),
    );
  });

  test('report the identity of the caller', async () => {
    const answer = await place.api.send('POST', pathOf('authentication.k8s.io/v1/selfsubjectreviews'), {
      body: {},
      headers: { 'content-type': 'application/json', ...as('someone', 'a-group', 'system:authenticated') },
    });
    expect(answer).toMatchObject({
      status: 201,
      body: { status: { userInfo: { username: 'someone', groups: expect.arrayContaining(['a-group']) } } },
    });
  });
});

test('a request without credentials, or with unknown ones, is refused', async () => {
  for (const identity of [{}, { token: 'unknown' }, { token: `sluice_${'x'.repeat(43)}` }]) {
    const stranger = place.api.as(identity);
    expect([401, 403]).toContain((await stranger.get(place.path('configmaps'))).status);
    stranger.close();
  }
  const stranger = place.api.as({ token: 'unknown' });
  expect(await stranger.get('/api')).toEqual(failure(401, 'Unauthorized', { message: 'Unauthorized' }));
  stranger.close();
});
