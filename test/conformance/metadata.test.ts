import { expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const widgets = useWidgets(place);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

test('the server sets the time of creation and the uid', async () => {
  const claimed = {
    ...{ uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7, selfLink: '/x' },
    deletionTimestamp: '2001-01-01T00:00:00Z',
  };
  const { metadata } = made(await place.api.post(place.path('configmaps'), configMap('made', {}, claimed)));
  expect(metadata).toMatchObject({ uid: expect.stringMatching(UUID), resourceVersion: expect.stringMatching(/./) });
  expect(metadata.creationTimestamp).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(metadata.creationTimestamp).not.toBe('2001-01-01T00:00:00Z');
  expect(metadata).not.toHaveProperty('deletionTimestamp');
});

test('an object that is created again has another uid', async () => {
  const path = place.path('configmaps');
  const first = made(await place.api.post(path, configMap('again')));
  made(await place.api.delete(`${path}/again`));
  const second = made(await place.api.post(path, configMap('again')));
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
  expect(
    await place.api.put(`${path}/again`, { ...first, metadata: { name: 'again', uid: first.metadata.uid } }),
  ).toEqual(failure(409, 'Conflict'));
});

test('an update cannot change fields of the server', async () => {
  const path = place.path('configmaps');
  const first = made(await place.api.post(path, configMap('fixed', { a: 'b' })));
  const { creationTimestamp: _left, ...metadata } = first.metadata;
  const changed = { ...metadata, creationTimestamp: '2001-01-01T00:00:00Z', generation: 7 };
  const second = made(await place.api.put(`${path}/fixed`, { ...first, metadata: changed, data: { a: 'c' } }));
  expect(second.metadata).toMatchObject({
    uid: first.metadata.uid,
    creationTimestamp: first.metadata.creationTimestamp,
  });
  expect(second.metadata.generation).toBe(first.metadata.generation);
});

test('an update does not mark an object as deleted', async () => {
  const path = place.path('configmaps');
  const first = made(await place.api.post(path, configMap('unmarked')));
  const metadata = { ...first.metadata, deletionTimestamp: '2001-01-01T00:00:00Z' };
  const message = expect.stringContaining(
    'metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable',
  );
  expect(await place.api.put(`${path}/unmarked`, { ...first, metadata })).toEqual(failure(422, 'Invalid', { message }));
  expect(made(await place.api.get(`${path}/unmarked`)).metadata).not.toHaveProperty('deletionTimestamp');
});

test('the version changes with every change, and with nothing else', async () => {
  const path = place.path('configmaps', 'version');
  const first = made(await place.api.post(place.path('configmaps'), configMap('version', { a: 'b' })));
  const same = made(await place.api.put(path, configMap('version', { a: 'b' })));
  expect(same.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  expect(made(await place.api.patch(path, {})).metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  const labelled = made(await place.api.patch(path, { metadata: { labels: { a: 'b' } } }));
  expect(labelled.metadata.resourceVersion).not.toBe(first.metadata.resourceVersion);
  expect(made(await place.api.get(path)).metadata.resourceVersion).toBe(labelled.metadata.resourceVersion);
});

test('the generation counts changes of the spec', async () => {
  const path = widgets.path('counted');
  const generation = async (patch: object, where = path) =>
    made(await place.api.patch(where, patch)).metadata.generation;
  expect(made(await place.api.post(widgets.path(), widgets.body('counted'))).metadata.generation).toBe(1);
  expect(await generation({ spec: { size: 2 } })).toBe(2);
  expect(await generation({ metadata: { labels: { a: 'b' } } })).toBe(2);
  expect(await generation({ status: { ready: true } }, `${path}/status`)).toBe(2);
  expect(await generation({ metadata: { generation: 77 } })).toBe(2);
  expect(await generation({ spec: { color: 'red' } })).toBe(3);
});

test('the metadata contain the owners of fields', async () => {
  const { metadata } = made(
    await place.api.post(`${place.path('configmaps')}?fieldManager=me`, configMap('owned', { a: 'b' })),
  );
  expect(metadata.managedFields).toEqual([
    {
      ...{ manager: 'me', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' },
      time: expect.stringMatching(/Z$/),
      fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
    },
  ]);
});

test('owners need a name, a kind and an identity, and only one is the controller', async () => {
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u' };
  const refused = [
    [{ ...owner, uid: '' }],
    [{ ...owner, kind: '' }],
    [{ ...owner, apiVersion: 'a/b/c' }],
    [
      { ...owner, controller: true },
      { ...owner, uid: 'v', controller: true },
    ],
  ];
  for (const ownerReferences of refused)
    expect(await place.api.post(place.path('configmaps'), configMap('child', {}, { ownerReferences }))).toEqual(
      failure(422, 'Invalid'),
    );
});

test('names of finalizers have a form', async () => {
  const create = (finalizer: string) =>
    place.api.post(place.path('configmaps'), configMap('held', {}, { finalizers: [finalizer] }));
  for (const finalizer of ['', 'a b/c', 'a/b/c', '/x'])
    expect(await create(finalizer)).toEqual(failure(422, 'Invalid'));
});
