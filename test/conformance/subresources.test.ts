import { expect, test } from 'vitest';
import { failure, made, usePlace } from './support/place.ts';
import { useWidgets, version } from './support/widgets.ts';

const place = usePlace();
const widgets = useWidgets(place);
const { subresources: _none, ...plainVersion } = version('v1');
const plain = useWidgets(place, { versions: [plainVersion] });

test('the status is not written with the object', async () => {
  const created = made(await place.api.post(widgets.path(), widgets.body('a', {}, { status: { ready: true } })));
  expect(created).not.toHaveProperty('status');
  const live = made(await place.api.get(widgets.path('a')));
  expect(made(await place.api.put(widgets.path('a'), { ...live, status: { ready: true } }))).not.toHaveProperty(
    'status',
  );
  expect(made(await place.api.patch(widgets.path('a'), { status: { ready: true } }))).not.toHaveProperty('status');
});

test('the object is not written with the status', async () => {
  const live = made(await place.api.post(widgets.path(), widgets.body('b', { size: 3 })));
  const metadata = { ...live.metadata, labels: { a: 'b' }, annotations: { a: 'b' }, finalizers: ['example.com/x'] };
  const written = await place.api.put(`${widgets.path('b')}/status`, {
    ...{ ...live, metadata },
    ...{ spec: { size: 9 }, status: { ready: true } },
  });
  expect(made(written)).toMatchObject({ spec: { size: 3 }, status: { ready: true } });
  for (const field of ['labels', 'annotations', 'finalizers']) expect(written.body.metadata).not.toHaveProperty(field);
  const patched = await place.api.patch(`${widgets.path('b')}/status`, { spec: { size: 9 }, status: { phase: 'x' } });
  expect(made(patched)).toMatchObject({ spec: { size: 3 }, status: { ready: true, phase: 'x' } });
  expect(made(await place.api.get(`${widgets.path('b')}/status`))).toEqual(patched.body);
});

test('the status is validated, and its version is checked', async () => {
  const live = made(await place.api.post(widgets.path(), widgets.body('c')));
  expect(await place.api.patch(`${widgets.path('c')}/status`, { status: { ready: 'yes' } })).toEqual(
    failure(422, 'Invalid'),
  );
  made(await place.api.patch(`${widgets.path('c')}/status`, { status: { ready: true } }));
  expect(await place.api.put(`${widgets.path('c')}/status`, { ...live, status: {} })).toEqual(failure(409, 'Conflict'));
  expect(await place.api.post(`${widgets.path('c')}/status`, live)).toEqual(failure(405, 'MethodNotAllowed'));
  expect(await place.api.delete(`${widgets.path('c')}/status`)).toEqual(failure(405, 'MethodNotAllowed'));
  expect((await place.api.patch(`${widgets.path('missing')}/status`, {})).status).toBe(404);
});

test('a kind without the sub-resource has the status in the object', async () => {
  made(await place.api.post(plain.path(), plain.body('d', {}, { status: { ready: true } })));
  expect(made(await place.api.get(plain.path('d'))).status).toEqual({ ready: true });
  expect((await place.api.get(`${plain.path('d')}/status`)).status).toBe(404);
});

test('kinds of the core have none that they do not need', async () => {
  expect((await place.api.get(`/api/v1/namespaces/${place.namespace}/status`)).body).toMatchObject({
    status: { phase: 'Active' },
  });
  expect((await place.api.get(place.path('configmaps', 'x', 'status'))).status).toBe(404);
});
