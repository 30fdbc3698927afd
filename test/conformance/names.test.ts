import { describe, expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';

const place = usePlace();
const create = (body: unknown, resource = 'configmaps') => place.api.post(place.path(resource), body);

/** A refusal of a field with its value; a server may say more exactly where in the field the fault is. */
const invalid = (field: string) =>
  failure(422, 'Invalid', {
    details: expect.objectContaining({
      causes: expect.arrayContaining([
        expect.objectContaining({ field: expect.toSatisfy((reported: string) => reported.startsWith(field)) }),
      ]),
    }),
  });

describe('names', () => {
  test.each([
    ['capitals', 'Name'],
    ['an underscore', 'a_b'],
    ['a dot at the end', 'a.'],
    ['two dots in a row', 'a..b'],
    ['254 characters', 'a'.repeat(254)],
    ['a slash', 'a/b'],
    ['a space', 'a b'],
    ['a line feed', 'a\nb'],
    ['a letter of another alphabet', 'ä'],
  ])('%s cannot be in one', async (_what, name) => {
    expect(await create(configMap(name))).toEqual(invalid('metadata.name'));
  });

  test.each(['a', '0', 'a.b', 'a-b.c-d.0', 'a'.repeat(253)])('%s is one', async (name) => {
    expect(made(await create(configMap(name))).metadata).toMatchObject({ name, namespace: place.namespace });
    expect((await place.api.get(place.path('configmaps', name))).status).toBe(200);
  });

  test('there must be one, or the beginning of one', async () => {
    const answer = await create({ data: {} });
    expect(answer).toEqual(invalid('metadata.name'));
    expect(answer.body.message).toContain('metadata.name: Required value');
  });

  test('the server makes the end of one that is begun', async () => {
    const first = made(await create({ metadata: { generateName: 'begun-' } }));
    const second = made(await create({ metadata: { generateName: 'begun-' } }));
    expect(first.metadata).toMatchObject({
      generateName: 'begun-',
      name: expect.stringMatching(/^begun-[a-z0-9]{5}$/),
    });
    expect(second.metadata.name).not.toBe(first.metadata.name);
    const named = made(await create({ metadata: { generateName: 'begun-', name: 'given' } }));
    expect(named.metadata.name).toBe('given');
    const long = made(await create({ metadata: { generateName: 'l'.repeat(80) } }));
    expect(long.metadata.name).toMatch(/^l{58}[a-z0-9]{5}$/);
  });

  test('a namespace has a DNS label as name, a role a path segment', async () => {
    expect(await place.api.post('/api/v1/namespaces', { metadata: { name: 'a.b' } })).toEqual(invalid('metadata.name'));
    expect(await place.api.post('/api/v1/namespaces', { metadata: { name: 'a'.repeat(64) } })).toEqual(
      invalid('metadata.name'),
    );
    const role = (name: string) => create({ metadata: { name }, rules: [] }, 'rbac.authorization.k8s.io/v1/roles');
    expect(made(await role('system:Some_Role')).metadata.name).toBe('system:Some_Role');
    for (const name of ['a/b', '..', '.', 'a%b']) expect(await role(name)).toEqual(invalid('metadata.name'));
  });

  test('labels and annotations have keys of one form', async () => {
    for (const labels of [{ 'a b': '' }, { '/a': '' }, { a: 'b c' }, { a: 'x'.repeat(64) }, { 'A.b/c/d': '' }])
      expect(await create(configMap('labels', {}, { labels })), JSON.stringify(labels)).toEqual(
        invalid('metadata.labels'),
      );
    for (const annotations of [{ 'a b': '' }, { [`${'p'.repeat(254)}/a`]: '' }])
      expect(await create(configMap('labels', {}, { annotations }))).toEqual(invalid('metadata.annotations'));
    const good = { labels: { 'example.com/A_b.c-d': 'V_1.2-x', e: '' }, annotations: { 'example.com/a': 'a b\n' } };
    expect(made(await create(configMap('labels', {}, good))).metadata).toMatchObject(good);
    const large = { annotations: { a: 'x'.repeat(257 * 1024) } };
    expect(await create(configMap('large', {}, large))).toEqual(invalid('metadata.annotations'));
  });

  test('keys of data have a form too', async () => {
    expect(await create(configMap('keys', { 'a b': '' }))).toEqual(invalid('data[a b]'));
    expect(await create(configMap('keys', { '..': '' }))).toEqual(invalid('data[..]'));
    expect((await create(configMap('keys', { '.a_B-c': '' }))).status).toBe(201);
  });
});

describe('namespaces', () => {
  test('an object is stored in the namespace of the path, or refused', async () => {
    expect(made(await create(configMap('here'))).metadata.namespace).toBe(place.namespace);
    expect(await create(configMap('there', {}, { namespace: 'elsewhere' }))).toEqual(failure(400, 'BadRequest'));
    const other = place.path('configmaps').replace(place.namespace, `${place.namespace}-none`);
    expect(await place.api.post(other, configMap('x'))).toEqual(
      failure(404, 'NotFound', {
        details: { name: `${place.namespace}-none`, kind: 'namespaces' },
        message: `namespaces "${place.namespace}-none" not found`,
      }),
    );
  });

  test('the object has the name of the path', async () => {
    await create(configMap('mine'));
    expect(await place.api.put(place.path('configmaps', 'mine'), configMap('yours'))).toEqual(
      failure(400, 'BadRequest', {
        message: 'the name of the object (yours) does not match the name on the URL (mine)',
      }),
    );
    const patched = await place.api.patch(place.path('configmaps', 'mine'), { metadata: { name: 'yours' } });
    expect([400, 422]).toContain(patched.status);
  });

  test('the object is of the kind and the version of the path', async () => {
    expect(await create({ ...configMap('k'), kind: 'Secret' })).toEqual(failure(400, 'BadRequest'));
    expect(await create({ ...configMap('k'), apiVersion: 'v2' })).toEqual(failure(400, 'BadRequest'));
    expect(await create({ metadata: { name: 'bare' } })).toMatchObject({ status: 201, body: { kind: 'ConfigMap' } });
  });

  test('cluster-scoped resources are not served in a namespace', async () => {
    const path = place.path('rbac.authorization.k8s.io/v1/clusterroles');
    expect((await place.api.get(path)).status).toBe(404);
    expect((await place.api.get('/api/v1/configmaps/x')).status).toBe(404);
  });

  test('a list without a namespace shows all of them', async () => {
    made(await create(configMap('everywhere', {}, { labels: { everywhere: place.namespace } })));
    const all = made(await place.api.list(`/api/v1/configmaps?labelSelector=everywhere%3D${place.namespace}`));
    expect(all.items.map(({ metadata }) => metadata.namespace)).toEqual([place.namespace]);
  });
});
