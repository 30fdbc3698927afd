import { describe, expect, test } from 'vitest';
import { APPLY_PATCH } from '../support/api/kube-api.ts';
import { configMap, failure, made, usePlace } from './support/place.ts';
import { useWidgets } from './support/widgets.ts';

const place = usePlace();
const widgets = useWidgets(place);
const path = (name: string) => place.path('configmaps', name);
const apply = (name: string, manager: string, data: object, more = '') =>
  place.api.apply(path(name), manager, configMap(name, data), more);

interface Owner {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
}

async function owners(of: string): Promise<string[]> {
  const { metadata } = made(await place.api.get(of));
  return (metadata.managedFields as Owner[]).map(({ manager, operation, subresource }) =>
    [manager, operation, ...(subresource === undefined ? [] : [subresource])].join(' '),
  );
}

describe('ownership', () => {
  test('is added by an apply, and removed by a later apply without it', async () => {
    const first = await apply('own', 'one', { a: '1', b: '1' });
    expect(first.status).toBe(201);
    expect(first.body.metadata.managedFields).toEqual([
      {
        ...{ manager: 'one', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1' },
        time: expect.stringMatching(/Z$/),
        fieldsV1: { 'f:data': { 'f:a': {}, 'f:b': {} } },
      },
    ]);
    const second = await apply('own', 'one', { b: '2', c: '2' });
    expect(second).toMatchObject({ status: 200, body: { data: { b: '2', c: '2' } } });
    expect(second.body.data).not.toHaveProperty('a');
  });

  test('is shared by managers that apply the same value', async () => {
    made(await apply('shared', 'one', { a: '1', b: '1' }));
    made(await apply('shared', 'two', { a: '1', c: '1' }));
    expect(await owners(path('shared'))).toEqual(['one Apply', 'two Apply']);
    // What one lets go stays as long as the other wants it.
    expect(made(await apply('shared', 'one', { b: '1' })).data).toEqual({ a: '1', b: '1', c: '1' });
    expect(made(await apply('shared', 'two', {})).data).toEqual({ b: '1' });
  });

  test('is kept apart from that of updates', async () => {
    made(await place.api.post(`${place.path('configmaps')}?fieldManager=maker`, configMap('updated', { a: '1' })));
    made(await place.api.patch(`${path('updated')}?fieldManager=changer`, { data: { b: '1' } }));
    made(await place.api.patch(`${path('updated')}?fieldManager=changer`, { data: { a: '2' } }));
    // The map itself is still the maker's.
    expect((await owners(path('updated'))).sort()).toEqual(['changer Update', 'maker Update']);
    expect(made(await apply('updated', 'one', { c: '1' })).data).toEqual({ a: '2', b: '1', c: '1' });
    expect(made(await apply('updated', 'one', {})).data).toEqual({ a: '2', b: '1' });
  });

  test('changes nothing if nothing changes', async () => {
    const first = made(await apply('same', 'one', { a: '1' }));
    const second = made(await apply('same', 'one', { a: '1' }));
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    expect(second.metadata.managedFields).toEqual(first.metadata.managedFields);
  });

  test('can be released', async () => {
    made(await apply('given', 'one', { a: '1' }));
    const none = { metadata: { managedFields: [{}] } };
    expect(made(await place.api.patch(path('given'), none)).metadata).not.toHaveProperty('managedFields');
  });

  test('of the status is that of another part of the object', async () => {
    made(await place.api.apply(widgets.path('parts'), 'one', widgets.body('parts', { size: 2 })));
    const status = { ...widgets.body('parts'), spec: undefined, status: { ready: true } };
    made(await place.api.apply(`${widgets.path('parts')}/status`, 'two', status));
    expect(await owners(widgets.path('parts'))).toEqual(['one Apply', 'two Apply status']);
    expect(made(await place.api.get(widgets.path('parts')))).toMatchObject({
      spec: { size: 2 },
      status: { ready: true },
    });
  });
});

describe('conflicts', () => {
  test('name the other and the field, and are won by force', async () => {
    made(await apply('fought', 'one', { a: '1', b: '1' }));
    const conflict = await apply('fought', 'two', { a: '2', b: '2' });
    expect(conflict).toEqual(
      failure(409, 'Conflict', {
        details: expect.objectContaining({
          causes: [
            { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' },
            { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.b' },
          ],
        }),
        message: 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b',
      }),
    );
    expect(made(await apply('fought', 'two', { a: '2' }, '&force=true')).data).toEqual({ a: '2', b: '1' });
    expect(await apply('fought', 'one', { a: '1', b: '1' })).toEqual(failure(409, 'Conflict'));
    expect(made(await apply('fought', 'one', { b: '1' })).data).toEqual({ a: '2', b: '1' });
  });

  test('are none where an update changes what was applied', async () => {
    made(await apply('taken', 'one', { a: '1' }));
    made(await place.api.patch(`${path('taken')}?fieldManager=two`, { data: { a: '2' } }));
    const conflict = await apply('taken', 'one', { a: '1' });
    expect(conflict).toEqual(
      failure(409, 'Conflict', { message: expect.stringContaining('conflict with "two" using v1') }),
    );
  });
});

describe('lists', () => {
  const applied = (name: string, manager: string, spec: object, more = '') =>
    place.api.apply(widgets.path(name), manager, widgets.body(name, spec), more);
  const specOf = async (answer: ReturnType<typeof applied>) => made(await answer).spec;

  test('of sets have an owner for each value', async () => {
    made(await applied('set', 'one', { tags: ['a', 'b'] }));
    expect(await specOf(applied('set', 'two', { tags: ['b', 'c'] }))).toMatchObject({ tags: ['a', 'b', 'c'] });
    expect(await specOf(applied('set', 'one', { tags: ['a'] }))).toMatchObject({ tags: ['a', 'b', 'c'] });
    expect(await specOf(applied('set', 'two', {}))).toMatchObject({ tags: ['a'] });
    expect(await applied('set', 'one', { tags: ['a', 'a'] })).toMatchObject({
      status: expect.toSatisfy((code) => [400, 422, 500].includes(code)),
    });
  });

  test('of maps have an owner for each field of an item', async () => {
    made(await applied('map', 'one', { ports: [{ name: 'http', port: 80 }] }));
    const second = {
      ports: [
        { name: 'http', note: 'web' },
        { name: 'dns', port: 53 },
      ],
    };
    expect(await specOf(applied('map', 'two', second))).toMatchObject({
      ports: [
        { name: 'http', port: 80, note: 'web' },
        { name: 'dns', port: 53 },
      ],
    });
    expect(await applied('map', 'two', { ports: [{ name: 'http', port: 81 }] })).toEqual(
      failure(409, 'Conflict', {
        message: expect.stringContaining('.spec.ports[name="http"].port'),
      }),
    );
    expect(await specOf(applied('map', 'two', {}))).toMatchObject({ ports: [{ name: 'http', port: 80 }] });
  });

  test('that are atomic have one owner', async () => {
    made(await applied('atomic', 'one', { steps: ['a', 'b'] }));
    expect(await applied('atomic', 'two', { steps: ['b'] })).toEqual(
      failure(409, 'Conflict', { message: expect.stringContaining('.spec.steps') }),
    );
    expect(await specOf(applied('atomic', 'two', { steps: ['b'] }, '&force=true'))).toMatchObject({ steps: ['b'] });
  });
});

describe('what is applied', () => {
  test('needs a manager', async () => {
    expect(await place.api.patch(path('x'), configMap('x'), APPLY_PATCH)).toEqual(
      failure(422, 'Invalid', { message: expect.stringContaining('is required for apply patch') }),
    );
    expect(await place.api.patch(`${path('x')}?force=true`, {})).toMatchObject({ body: { kind: 'Status' } });
  });

  test('can be YAML', async () => {
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: |\n    two\n    lines\n';
    expect(made(await place.api.apply(path('yaml'), 'one', yaml)).data).toEqual({ a: 'two\nlines\n' });
  });

  test('names its kind and has no managed fields', async () => {
    const { kind: _kind, ...kindless } = configMap('kindless');
    expect(await place.api.apply(path('kindless'), 'one', kindless)).toMatchObject({ status: 400 });
    const owned = configMap('owned', {}, { managedFields: [{ manager: 'x', operation: 'Apply' }] });
    expect(await place.api.apply(path('owned'), 'one', owned)).toEqual(
      failure(400, 'BadRequest', { message: expect.stringContaining('managedFields must be nil') }),
    );
  });

  test('is refused if it names a version that is not the present one', async () => {
    const first = made(await apply('versioned', 'one', { a: '1' }));
    made(await apply('versioned', 'one', { a: '2' }));
    const old = configMap('versioned', { a: '3' }, { resourceVersion: first.metadata.resourceVersion });
    expect(await place.api.apply(path('versioned'), 'one', old)).toEqual(failure(409, 'Conflict'));
  });

  test('makes an object only under its name', async () => {
    expect((await place.api.apply(path('that'), 'one', configMap('this'))).status).toBe(400);
    expect((await place.api.get(path('that'))).status).toBe(404);
  });
});
