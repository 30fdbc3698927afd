import { describe, expect, test } from 'vitest';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const path = (name = '') => place.path('configmaps', ...(name === '' ? [] : [name]));

describe('an update of another version than the present one', () => {
  test('is a conflict, with the text that clients match', async () => {
    const first = made(await place.api.post(path(), configMap('stale', { a: 'b' })));
    made(await place.api.put(path('stale'), { ...first, data: { a: 'c' } }));
    const conflict = failure(409, 'Conflict', {
      message:
        'Operation cannot be fulfilled on configmaps "stale": the object has been modified; please apply your changes to the latest version and try again',
      details: { name: 'stale', kind: 'configmaps' },
    });
    expect(await place.api.put(path('stale'), { ...first, data: { a: 'd' } })).toEqual(conflict);
    const { resourceVersion } = first.metadata;
    expect(await place.api.patch(path('stale'), { metadata: { resourceVersion }, data: { a: 'd' } })).toEqual(conflict);
    expect(made(await place.api.get(path('stale'))).data).toEqual({ a: 'c' });
  });

  test('is none if no version is named', async () => {
    made(await place.api.post(path(), configMap('any', { a: 'b' })));
    expect(made(await place.api.put(path('any'), configMap('any', { a: 'c' }))).data).toEqual({ a: 'c' });
    expect(made(await place.api.patch(path('any'), { data: { a: 'd' } })).data).toEqual({ a: 'd' });
  });

  test('is a conflict too if the object was deleted and created again', async () => {
    const first = made(await place.api.post(path(), configMap('again')));
    made(await place.api.delete(path('again')));
    expect(await place.api.put(path('again'), first)).toEqual(failure(404, 'NotFound'));
    made(await place.api.post(path(), configMap('again')));
    expect(await place.api.put(path('again'), first)).toEqual(failure(409, 'Conflict'));
    expect(await place.api.patch(path('again'), { metadata: { uid: first.metadata.uid } })).toMatchObject({
      status: expect.toSatisfy((code: number) => code === 409 || code === 422),
    });
  });
});

describe('objects of defined kinds', () => {
  const widgets = useWidgets(place);

  test('are only updated with a version', async () => {
    const first = made(await place.api.post(widgets.path(), widgets.body('w')));
    expect(await place.api.put(widgets.path('w'), widgets.body('w', { size: 2 }))).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('must be specified for an update') }),
    );
    expect((await place.api.put(widgets.path('w'), { ...first, spec: { size: 2 } })).status).toBe(200);
  });
});

test('20 clients who count with one counter count right', async () => {
  made(await place.api.post(path(), configMap('counter', { value: '0' })));
  const [clients, rounds] = [20, 5];
  let conflicts = 0;
  const count = async () => {
    for (let round = 0; round < rounds; ) {
      const live = made(await place.api.get(path('counter')));
      const value = Number((live.data as { value: string }).value) + 1;
      const { status, text } = await place.api.put(path('counter'), { ...live, data: { value: `${value}` } });
      expect([200, 409], text).toContain(status);
      if (status === 200) round += 1;
      else conflicts += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, count));
  expect(made(await place.api.get(path('counter'))).data).toEqual({ value: `${clients * rounds}` });
  expect(conflicts).toBeGreaterThan(0);
});

test('patches that name no version do not lose each other', async () => {
  made(await place.api.post(path(), configMap('patched')));
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  const answers = await Promise.all(keys.map((key) => place.api.patch(path('patched'), { data: { [key]: key } })));
  expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200));
  expect(made(await place.api.get(path('patched'))).data).toEqual(Object.fromEntries(keys.map((key) => [key, key])));
});

test('of many who make one object one does', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => place.api.post(path(), configMap('raced'))));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(answers.filter(({ body }) => body.reason === 'AlreadyExists')).toHaveLength(19);
});
