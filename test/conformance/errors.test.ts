import { expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const widgets = useWidgets(place);
const path = (name = '') => place.path('configmaps', ...(name === '' ? [] : [name]));

test('a missing object is reported by kind and name', async () => {
  expect(await place.api.get(path('missing'))).toEqual(
    failure(404, 'NotFound', {
      message: 'configmaps "missing" not found',
      details: { name: 'missing', kind: 'configmaps' },
    }),
  );
  expect(await place.api.get(widgets.path('missing'))).toEqual(
    failure(404, 'NotFound', {
      message: `widgets.${widgets.group} "missing" not found`,
      details: { name: 'missing', group: widgets.group, kind: 'widgets' },
    }),
  );
});

test('an invalid object is reported field by field', async () => {
  const bad = widgets.body('bad', { size: 101, color: 'pink', min: 'one', ports: [{ port: 1 }] });
  const answer = await place.api.post(widgets.path(), bad);
  expect(answer).toEqual(
    failure(422, 'Invalid', {
      message: expect.stringMatching(/^Widget\.\S+ "bad" is invalid: /),
      details: expect.objectContaining({ name: 'bad', group: widgets.group, kind: 'Widget' }),
    }),
  );
  const causes = (answer.body.details as { causes: { reason: string; field: string; message: string }[] }).causes;
  const byField = new Map(causes.map((cause) => [cause.field, cause]));
  expect(byField.get('spec.size')?.reason).toBe('FieldValueInvalid');
  expect(byField.get('spec.size')?.message).toContain('100');
  expect(byField.get('spec.color')).toMatchObject({
    reason: 'FieldValueNotSupported',
    message: 'Unsupported value: "pink": supported values: "red", "green", "blue"',
  });
  expect(byField.get('spec.min')?.reason).toMatch(/^FieldValue(Type)?Invalid$/);
  expect(byField.get('spec.ports[0].name')?.reason).toBe('FieldValueRequired');
});

test('a method that the path does not have gets 405', async () => {
  for (const [method, target] of [
    ['POST', path('x')],
    ['PUT', path()],
    ['PATCH', path()],
  ] as const)
    expect(await place.api.send(method, target, { body: {} }), method).toEqual(failure(405, 'MethodNotAllowed'));
});

test('an invalid body gets 400 or 422', async () => {
  for (const text of ['', '{', '[]', 'null', '"text"', '{"metadata": 5}', '{"metadata": {"name": 5}}']) {
    const { status, body } = await place.api.post(path(), text);
    expect([400, 422], text).toContain(status);
    expect(body).toMatchObject({ kind: 'Status', status: 'Failure' });
  }
});

test('a media type that the server does not support gets 415 or 406', async () => {
  made(await place.api.post(path(), configMap('typed')));
  const sent = { body: 'x', headers: { 'content-type': 'text/plain' } };
  expect(await place.api.send('POST', path(), sent)).toEqual(failure(415, 'UnsupportedMediaType'));
  const wanted = await place.api.get(path('typed'), { accept: 'text/html' });
  expect(wanted).toEqual(failure(406, 'NotAcceptable'));
});

test('a path that leads nowhere is not found', async () => {
  for (const nowhere of ['/nowhere', '/api/v2', '/apis/missing.example.com/v1/things', '/api/v1/namespaces/x/y/z/a/b'])
    expect((await place.api.get(nowhere)).status, nowhere).toBe(404);
});
