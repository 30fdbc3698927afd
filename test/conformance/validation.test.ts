import { describe, expect, test } from 'vitest';
import { APPLY_PATCH } from '../support/api/kube-api.ts';
import { configMap, failure, made, pathOf, usePlace } from './support/place.ts';

const place = usePlace();
const refused = (message: string) => failure(422, 'Invalid', { message: expect.stringContaining(message) });

describe('a Secret has what its type promises', () => {
  test.each<[string, readonly string[]]>([
    ['kubernetes.io/tls', ['data[tls.crt]', 'data[tls.key]']],
    ['kubernetes.io/basic-auth', ['data[username]', 'data[password]']],
    ['kubernetes.io/ssh-auth', ['data[ssh-privatekey]']],
    ['kubernetes.io/dockerconfigjson', ['data[.dockerconfigjson]']],
    ['kubernetes.io/dockercfg', ['data[.dockercfg]']],
    ['kubernetes.io/service-account-token', ['metadata.annotations[kubernetes.io/service-account.name]']],
  ])('%s', async (type, fields) => {
    const answer = await place.api.post(place.path('secrets'), { metadata: { name: 'typed' }, type });
    expect(answer).toEqual(failure(422, 'Invalid'));
    const { causes } = answer.body.details as { readonly causes: readonly { field: string; reason: string }[] };
    expect(causes.map(({ reason }) => reason)).toEqual(fields.map(() => 'FieldValueRequired'));
    expect(causes.map(({ field }) => field)).toEqual(fields);
  });

  test('a password alone is enough for basic authentication', async () => {
    const secret = { metadata: { name: 'basic' }, type: 'kubernetes.io/basic-auth', stringData: { password: 'p' } };
    made(await place.api.post(place.path('secrets'), secret));
  });

  test('an empty type is Opaque, and any other may contain anything', async () => {
    expect(made(await place.api.post(place.path('secrets'), { metadata: { name: 'empty' }, type: '' })).type).toBe(
      'Opaque',
    );
    made(await place.api.post(place.path('secrets'), { metadata: { name: 'own' }, type: 'example.com/own' }));
  });
});

describe('times', () => {
  test.each(['2026-01-02T03:04:05Z', '2026-01-02', 'soon', ''])('a Lease is not renewed at %j', async (renewTime) => {
    const lease = { metadata: { generateName: 'lease-' }, spec: { renewTime } };
    const { status } = await place.api.post(place.path('coordination.k8s.io/v1/leases'), lease);
    expect([400, 422]).toContain(status);
  });
});

describe('an Event', () => {
  test('about an object without a namespace is in the namespace default', async () => {
    const event = (name: string) => ({ metadata: { generateName: name }, involvedObject: { kind: 'Node', name: 'n' } });
    expect(await place.api.post(place.path('events'), event('misplaced-'))).toEqual(
      refused('involvedObject.namespace: Invalid value: "": does not match event.namespace'),
    );
    made(await place.api.post('/api/v1/namespaces/default/events', event('placed-')));
  });
});

describe('a binding', () => {
  const rbac = 'rbac.authorization.k8s.io/v1';
  const subjects = [{ kind: 'ServiceAccount', name: 'robot' }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };

  test('in a namespace may leave out that of a service account', async () => {
    const { namespace } = place;
    const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' };
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }];
    made(await place.api.post(place.path(`${rbac}/roles`), { metadata: { name: 'reader' }, rules }));
    made(
      await place.api.post(place.path(`${rbac}/rolebindings`), {
        metadata: { name: 'robots' },
        roleRef: role,
        subjects,
      }),
    );
    const spec = {
      user: `system:serviceaccount:${namespace}:robot`,
      resourceAttributes: { namespace, verb: 'list', resource: 'configmaps' },
    };
    const review = () => place.api.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
    await expect.poll(async () => made(await review()).status).toMatchObject({ allowed: true });
  });

  test('of the whole cluster names it', async () => {
    const binding = { metadata: { generateName: 'conformance-' }, roleRef, subjects };
    expect(await place.api.post(`${pathOf(`${rbac}/clusterrolebindings`)}?dryRun=All`, binding)).toEqual(
      refused('subjects[0].namespace: Required value'),
    );
  });
});

describe('requests', () => {
  const path = (name = '') => place.path('configmaps', ...(name === '' ? [] : [name]));
  const bad = (message: string) => failure(400, 'BadRequest', { message: expect.stringContaining(message) });

  test('a body that is no object is a bad request', async () => {
    for (const text of ['', '[]', '"text"', '5'])
      expect(await place.api.post(path(), text), text).toEqual(
        bad('the object provided is unrecognized (must be of type ConfigMap)'),
      );
  });

  test('the name is in the body, not only in the URL', async () => {
    const message = 'the name of the object (unnamed based on URL) was undeterminable: name must be provided';
    expect(await place.api.put(path('unnamed'), { metadata: {} })).toEqual(bad(message));
    const applied = { apiVersion: 'v1', kind: 'ConfigMap' };
    expect(await place.api.patch(`${path('unnamed')}?fieldManager=m`, applied, APPLY_PATCH)).toEqual(bad(message));
  });

  test('a list is of a version that is a number', async () => {
    for (const version of ['x', '-5', '1.5'])
      expect(await place.api.get(`${path()}?resourceVersion=${version}`)).toEqual(
        bad('invalid resource version: resourceVersion: Invalid value'),
      );
    expect(await place.api.get(`${path()}?timeoutSeconds=x`)).toEqual(failure(400, 'BadRequest'));
  });

  test('an object is not read in a version that is no number', async () => {
    made(await place.api.post(path(), configMap('versioned')));
    expect((await place.api.get(`${path('versioned')}?resourceVersion=x`)).status).toBeGreaterThanOrEqual(400);
  });

  test('namespaces are deleted one by one', async () => {
    expect(await place.api.delete('/api/v1/namespaces?dryRun=All')).toEqual(failure(405, 'MethodNotAllowed'));
    const { resources } = (await place.api.get<{ resources: { name: string; verbs: string[] }[] }>('/api/v1')).body;
    expect(resources.find(({ name }) => name === 'namespaces')?.verbs.toSorted()).toEqual([
      ...['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    ]);
  });
});
