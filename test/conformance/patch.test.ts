import { describe, expect, test } from 'vitest';
import { JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const path = (name: string) => place.path('configmaps', name);

async function create(name: string, data: object = {}, metadata: object = {}): Promise<void> {
  made(await place.api.post(place.path('configmaps'), configMap(name, data, metadata)));
}

describe('JSON patch', () => {
  test('does its operations in order', async () => {
    await create('json', { a: '1', b: '2' });
    const patched = await place.api.patch(
      path('json'),
      [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'add', path: '/data/c', value: '3' },
        { op: 'replace', path: '/data/a', value: '4' },
        { op: 'remove', path: '/data/b' },
        { op: 'copy', from: '/data/a', path: '/data/d' },
        { op: 'move', from: '/data/c', path: '/data/e~1f' },
      ],
      JSON_PATCH,
    );
    // The last key has a slash, which no key of data may have.
    expect(patched).toEqual(failure(422, 'Invalid'));
    const good = [
      { op: 'replace', path: '/data/a', value: '4' },
      { op: 'add', path: '/metadata/annotations', value: { 'example.com/x': 'y' } },
      { op: 'replace', path: '/metadata/annotations/example.com~1x', value: 'z' },
    ];
    expect(made(await place.api.patch(path('json'), good, JSON_PATCH))).toMatchObject({
      data: { a: '4', b: '2' },
      metadata: { annotations: { 'example.com/x': 'z' } },
    });
  });

  test.each([
    ['a test that fails', [{ op: 'test', path: '/data/a', value: '2' }], 422],
    ['a path that is not there', [{ op: 'replace', path: '/data/x/y', value: '2' }], 422],
    ['a removal of what is not there', [{ op: 'remove', path: '/data/x' }], 422],
    ['no list', { op: 'add' }, 400],
    ['no JSON', '[{', 400],
  ])('%s is refused', async (what, patch, code) => {
    const name = what.replaceAll(' ', '-').toLowerCase();
    await create(name, { a: '1' });
    const answer = await place.api.patch(path(name), patch, JSON_PATCH);
    expect(answer.status, answer.text).toBe(code);
    expect(made(await place.api.get(path(name))).data).toEqual({ a: '1' });
  });

  test('replaces a field that is not there, unlike RFC 6902', async () => {
    await create('missing-field', { a: '1' });
    const patch = [
      { op: 'test', path: '/data/b', value: null },
      { op: 'replace', path: '/data/b', value: '2' },
    ];
    expect(made(await place.api.patch(path('missing-field'), patch, JSON_PATCH)).data).toEqual({ a: '1', b: '2' });
  });
});

describe('merge patch', () => {
  test('replaces values, and removes nulls', async () => {
    await create('merge', { a: '1', b: '2' }, { labels: { x: 'y' } });
    const patch = { data: { a: null, c: '3' }, metadata: { labels: null } };
    const patched = made(await place.api.patch(path('merge'), patch));
    expect(patched.data).toEqual({ b: '2', c: '3' });
    expect(patched.metadata).not.toHaveProperty('labels');
  });

  test('replaces lists', async () => {
    await create('lists', {}, { finalizers: ['example.com/a', 'example.com/b'] });
    const patched = made(await place.api.patch(path('lists'), { metadata: { finalizers: ['example.com/c'] } }));
    expect(patched.metadata.finalizers).toEqual(['example.com/c']);
    made(await place.api.patch(path('lists'), { metadata: { finalizers: null } }));
  });

  test('makes no object that is invalid', async () => {
    await create('invalid');
    expect(await place.api.patch(path('invalid'), { data: { a: 5 } })).toMatchObject({
      status: expect.toSatisfy((code) => [400, 422].includes(code as number)),
    });
    expect(await place.api.patch(path('invalid'), { metadata: { labels: { 'a b': '' } } })).toEqual(
      failure(422, 'Invalid'),
    );
  });
});

describe('strategic merge patch', () => {
  test('merges items of lists by their keys', async () => {
    const owner = async (name: string) => {
      const { metadata } = made(await place.api.post(place.path('configmaps'), configMap(name)));
      return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: metadata.uid };
    };
    const [first, second] = [await owner('owner-one'), await owner('owner-two')];
    await create('strategic', {}, { finalizers: ['example.com/a'], ownerReferences: [first] });
    const patch = { metadata: { finalizers: ['example.com/b'], ownerReferences: [second] } };
    const patched = made(await place.api.patch(path('strategic'), patch, STRATEGIC_PATCH));
    expect(patched.metadata.finalizers).toEqual(expect.arrayContaining(['example.com/a', 'example.com/b']));
    expect(patched.metadata.ownerReferences).toHaveLength(2);
    const removal = {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['example.com/a', 'example.com/b'],
        ownerReferences: [{ uid: first.uid, $patch: 'delete' }],
      },
    };
    const removed = made(await place.api.patch(path('strategic'), removal, STRATEGIC_PATCH));
    expect(removed.metadata.finalizers ?? []).toEqual([]);
    expect(removed.metadata.ownerReferences).toEqual([second]);
  });

  test('replaces a map with the replace directive', async () => {
    await create('replaced', { a: '1', b: '2' });
    const patch = { data: { $patch: 'replace', c: '3' } };
    expect(made(await place.api.patch(path('replaced'), patch, STRATEGIC_PATCH)).data).toEqual({ c: '3' });
  });
});

describe('objects of defined kinds', () => {
  const widgets = useWidgets(place);

  test('know no strategy', async () => {
    made(await place.api.post(widgets.path(), widgets.body('w')));
    expect(await place.api.patch(widgets.path('w'), { spec: {} }, STRATEGIC_PATCH)).toEqual(
      failure(415, 'UnsupportedMediaType'),
    );
    expect(made(await place.api.patch(widgets.path('w'), { spec: { size: 7 } }, MERGE_PATCH)).spec).toEqual({
      size: 7,
    });
    const size = [{ op: 'replace', path: '/spec/size', value: 8 }];
    expect(made(await place.api.patch(widgets.path('w'), size, JSON_PATCH)).spec).toEqual({ size: 8 });
  });
});

test('a patch is of a type that the server knows', async () => {
  await create('typed');
  for (const type of ['application/json', 'text/plain', 'application/x-patch+json'])
    expect(await place.api.patch(path('typed'), {}, type)).toEqual(failure(415, 'UnsupportedMediaType'));
});
