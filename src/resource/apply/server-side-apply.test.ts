import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../object/object.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { serverSideApply } from './server-side-apply.ts';
import { gadget, gadgetSchema, Scene } from './testing.ts';

const ports = (...items: readonly Record<string, unknown>[]) => ({ spec: { ports: items } });

describe('what is applied', () => {
  test('creates, and is owned leaf by leaf, item by item', () => {
    const scene = new Scene();
    const fields = {
      metadata: { labels: { app: 'web' }, finalizers: ['x/y'] },
      spec: {
        color: 'red',
        selector: { a: '1' },
        steps: [{ run: 'x' }],
        tags: ['t'],
        ports: [{ port: 80, name: 'http' }],
        free: { deep: { er: 1 }, list: [1] },
        nested: { n: { a: 'x' } },
      },
    };
    scene.apply('a', fields);
    expect(scene.fields).toEqual(fields);
    expect(scene.object?.metadata.managedFields).toEqual([
      {
        manager: 'a',
        operation: 'Apply',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:01Z',
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { 'f:app': {} }, 'f:finalizers': { 'v:"x/y"': {} } },
          'f:spec': {
            'f:color': {},
            'f:selector': {},
            'f:steps': {},
            'f:tags': { 'v:"t"': {} },
            'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:name': {} } },
            'f:free': { 'f:deep': { '.': {}, 'f:er': {} }, 'f:list': {} },
            'f:nested': { 'f:n': { '.': {}, 'f:a': {} } },
          },
        },
      },
    ]);
  });

  test('keeps what others own', () => {
    const scene = new Scene();
    scene.apply('a', { metadata: { labels: { a: '1' } }, spec: { color: 'red', tags: ['a'] } });
    scene.apply('b', { metadata: { labels: { b: '2' } }, spec: { size: 3, tags: ['b'] } });
    expect(scene.fields).toEqual({
      metadata: { labels: { a: '1', b: '2' } },
      spec: { color: 'red', size: 3, tags: ['a', 'b'] },
    });
  });

  test('a second time changes nothing, not even the time', () => {
    const scene = new Scene();
    const fields = { spec: { color: 'red', ...ports({ port: 1 }).spec, selector: { a: 'b' } } };
    scene.apply('a', fields);
    const before = scene.object;
    expect(scene.apply('a', fields)).toBe(before);
  });

  test('never changes its arguments', () => {
    const live = deepFreeze(
      new Scene().apply('a', { spec: { color: 'red', tags: ['a'], ...ports({ port: 1 }).spec } }),
    );
    const applied = deepFreeze(gadget({ spec: { size: 1, tags: ['b'] } }));
    const request = { live, schema: gadgetSchema, apiVersion: 'v1', now: '2026-01-01T00:00:00Z', hasStatus: true };
    serverSideApply({ ...request, applied, manager: 'a', force: true });
    serverSideApply({ ...request, applied, manager: 'b', force: true });
  });

  test('a configuration without metadata is one of the object that the URL names', () => {
    const applied = { apiVersion: 'v1', kind: 'Gadget', spec: { color: 'red' } };
    const request = { live: undefined, applied, manager: 'a', force: false, schema: gadgetSchema, apiVersion: 'v1' };
    const { object } = serverSideApply({ ...request, now: '2026-01-01T00:00:00Z', hasStatus: true, subResource: '' });
    expect(object.metadata.managedFields).toMatchObject([{ manager: 'a', fieldsV1: { 'f:spec': { 'f:color': {} } } }]);
  });

  test('null counts as absent where the schema does not permit it', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: null, mode: null, size: 1 } });
    expect(scene.fields).toEqual({ spec: { color: null, size: 1 } });
    expect(scene.owners).toEqual({ 'a Apply': { 'f:spec': { 'f:color': {}, 'f:size': {} } } });
  });

  test('a field named __proto__ is a field', () => {
    const scene = new Scene();
    const fields = JSON.parse('{"spec": {"free": {"__proto__": {"polluted": 1}}}}');
    scene.apply('a', fields);
    scene.apply('b', { spec: { free: { other: 1 } } });
    expect(JSON.stringify(scene.fields)).toBe('{"spec":{"free":{"__proto__":{"polluted":1},"other":1}}}');
    scene.apply('a', { spec: { size: 1 } });
    expect(JSON.stringify(scene.fields)).toBe('{"spec":{"free":{"other":1},"size":1}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('what a manager leaves out', () => {
  test('is removed, containers with it', () => {
    const scene = new Scene();
    scene.apply('a', {
      metadata: { labels: { a: '1' } },
      spec: { color: 'red', size: 1, tags: ['x', 'y'], ...ports({ port: 1 }, { port: 2 }).spec },
    });
    scene.apply('a', { spec: { size: 1, tags: ['y'], ...ports({ port: 2 }).spec } });
    expect(scene.fields).toEqual({ spec: { size: 1, tags: ['y'], ports: [{ port: 2 }] } });
    scene.apply('a', {});
    expect(scene.fields).toEqual({});
    expect(scene.object?.metadata.managedFields).toEqual([]);
  });

  test('stays while another owns it', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: 'red', ...ports({ port: 1, name: 'p' }).spec } });
    scene.apply('b', { spec: { color: 'red', ...ports({ port: 1, note: 'n' }).spec } });
    scene.apply('a', {});
    expect(scene.fields).toEqual({ spec: { color: 'red', ports: [{ port: 1, note: 'n' }] } });
    scene.apply('b', {});
    expect(scene.fields).toEqual({});
  });

  test('stays if an update has written it since', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: 'red', size: 1 } });
    scene.update('edit', { spec: { color: 'blue', size: 1 } });
    scene.apply('a', { spec: {} });
    expect(scene.fields).toEqual({ spec: { color: 'blue' } });
  });

  test('leaves a map that another keeps empty', () => {
    const scene = new Scene();
    scene.apply('a', { metadata: { labels: {} } });
    scene.apply('b', { metadata: { labels: { x: '1' } } });
    scene.apply('b', {});
    expect(scene.fields).toEqual({ metadata: { labels: {} } });
  });
});

describe('conflicts', () => {
  const conflict = (scene: Scene, fields: Record<string, unknown>) => {
    try {
      scene.apply('b', fields);
    } catch (error) {
      return error as { code: string; message: string; details: { causes: unknown[] } };
    }
    throw new Error('there was no conflict');
  };

  test('with an update names the version, as Kubernetes does', () => {
    const scene = new Scene();
    scene.update('kubectl-client-side-apply', { spec: { color: 'red' } });
    const error = conflict(scene, { spec: { color: 'blue' } });
    expect(error.code).toBe('Conflict');
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .spec.color',
    );
    expect(error.details.causes).toEqual([
      {
        reason: 'FieldManagerConflict',
        message: 'conflict with "kubectl-client-side-apply" using v1',
        field: '.spec.color',
      },
    ]);
  });

  test('with several are listed by manager', () => {
    const scene = new Scene();
    scene.apply('z', {
      spec: { ...ports({ port: 1, name: 'x' }).spec, tags: ['t'] },
      metadata: { labels: { a: '1' } },
    });
    scene.update('u', { ...scene.fields, spec: { ...(scene.fields.spec as object), color: 'red' } });
    const error = conflict(scene, {
      metadata: { labels: { a: '2' } },
      spec: { color: 'blue', ...ports({ port: 1, protocol: 'TCP', name: 'y' }).spec },
    });
    expect(error.message).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "u" using v1:',
        '- .spec.color',
        'conflicts with "z":',
        '- .metadata.labels.a',
        '- .spec.ports[port=1,protocol="TCP"].name',
      ].join('\n'),
    );
  });

  test('change nothing; forced, they take ownership of the field', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: 'red', size: 1 } });
    const before = scene.object;
    conflict(scene, { spec: { color: 'blue' } });
    expect(scene.object).toBe(before);
    scene.apply('b', { spec: { color: 'blue' } }, { force: true });
    expect(scene.fields).toEqual({ spec: { color: 'blue', size: 1 } });
    expect(scene.owners).toEqual({
      'a Apply': { 'f:spec': { 'f:size': {} } },
      'b Apply': { 'f:spec': { 'f:color': {} } },
    });
    expect(scene.times).toEqual({ a: '01', b: '03' });
  });

  test('there are none for the same value: it is shared', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: 'red' } });
    scene.apply('b', { spec: { color: 'red' } });
    expect(scene.owners).toEqual({
      'a Apply': { 'f:spec': { 'f:color': {} } },
      'b Apply': { 'f:spec': { 'f:color': {} } },
    });
    expect(conflict(scene, { spec: { color: 'blue' } }).message).toContain('conflict with "a": .spec.color');
  });

  test('lists and maps with one owner conflict as a whole', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { selector: { x: '1' }, steps: [{ run: 'a' }] } });
    expect(conflict(scene, { spec: { selector: { y: '1' } } }).message).toContain(': .spec.selector');
    expect(conflict(scene, { spec: { steps: [] } }).message).toContain(': .spec.steps');
    expect(conflict(scene, { spec: { steps: {} } }).message).toContain(': .spec.steps');
  });
});

describe('order of shared lists', () => {
  test.each([
    ['a b', 'a b c', 'a b c'],
    ['a b c', 'b', 'a b c'],
    ['a b c', 'c a', 'b c a'],
    ['x s', 'y s', 'x y s'],
    ['s t a', 't s x', 't a s x'],
    ['a b', 'b a', 'b a'],
    ['', 'b a', 'b a'],
    ['a', '', 'a'],
  ])('%s with %s applied gives %s', (live, applied, expected) => {
    const tags = (text: string) => ({ spec: { tags: text.split(' ').filter(Boolean) } });
    const scene = new Scene();
    scene.update('u', tags(live));
    scene.apply('a', tags(applied));
    expect(scene.fields).toEqual(tags(expected));
  });
});

describe('the status', () => {
  test('is not written by an apply to the object', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { size: 1 }, status: { phase: 'x' } });
    expect(scene.fields).toEqual({ spec: { size: 1 } });
    scene.update('controller', { ...scene.fields, status: { phase: 'Ready' } }, 'status');
    scene.apply('a', { spec: { size: 2 }, status: { phase: 'x' } });
    expect(scene.fields).toEqual({ spec: { size: 2 }, status: { phase: 'Ready' } });
  });

  test('is all that an apply to the sub-resource writes', () => {
    const scene = new Scene({ hasStatus: true, subResource: 'status' });
    scene.update('user', { spec: { size: 1 } }, '');
    scene.apply('c', { metadata: { labels: { a: '1' } }, spec: { size: 9 }, status: { phase: 'Ready' } });
    expect(scene.fields).toEqual({ spec: { size: 1 }, status: { phase: 'Ready' } });
    expect(scene.object?.metadata.managedFields?.map(({ manager, subresource }) => [manager, subresource])).toEqual([
      ['c', 'status'],
      ['user', undefined],
    ]);
    expect(() => scene.apply('d', { status: { phase: 'Failed' } })).toThrow(
      'Apply failed with 1 conflict: conflict with "c" with subresource "status": .status.phase',
    );
  });

  test('belongs to the object where there is no sub-resource', () => {
    const scene = new Scene({ hasStatus: false });
    scene.apply('a', { status: { phase: 'x' } });
    expect(scene.fields).toEqual({ status: { phase: 'x' } });
    expect(scene.owners).toEqual({ 'a Apply': { 'f:status': { 'f:phase': {} } } });
  });
});

describe('an object that was never tracked', () => {
  test('is owned by before-first-apply', () => {
    const scene = new Scene();
    scene.object = gadget({ spec: { color: 'red', size: 1 } });
    expect(() => scene.apply('a', { spec: { color: 'blue' } })).toThrow(
      'conflict with "before-first-apply" using v1: .spec.color',
    );
    scene.apply('a', { spec: { size: 1 } });
    expect(scene.owners).toEqual({
      'a Apply': { 'f:spec': { 'f:size': {} } },
      'before-first-apply Update': { 'f:spec': { '.': {}, 'f:color': {}, 'f:size': {} } },
    });
  });
});

describe('what cannot be applied', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ spec: { tags: ['a', 'b', 'a'] } }, 'Gadget "one" is invalid: spec.tags: duplicate entries for key [="a"]'],
    [ports({ port: 1 }, { port: 1, protocol: 'TCP' }), 'spec.ports: duplicate entries for key [port=1,protocol="TCP"]'],
    [
      { spec: { ports: [{ name: 'x' }, 3] } },
      'spec.ports[1]: Required value: an item must have one of the keys port, protocol',
    ],
    [{ spec: { tags: [['a']] } }, 'spec.tags[0]: Invalid value: an item of a set must be'],
    [{ spec: { colour: 'red' } }, 'spec.colour: field not declared in schema'],
    [{ metadata: { managedFields: [] } }, 'metadata.managedFields must be nil'],
  ])('%j', (fields, message) => {
    expect(() => new Scene().apply('a', fields)).toThrow(message);
  });

  test('nesting that has no end', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = { deep };
    expect(() => new Scene().apply('a', { spec: { free: deep } })).toThrow('spec.free.deep: Too deep');
  });

  test('duplicates in the live object stay until an apply names them', () => {
    const scene = new Scene();
    scene.object = gadget({
      spec: { tags: ['a', 'b', 'a'], ports: [{ port: 1 }, { port: 1, note: 'x' }, { port: 2 }] },
    });
    scene.apply('m', { spec: { size: 1 } });
    expect(scene.fields.spec).toEqual({
      size: 1,
      tags: ['a', 'b', 'a'],
      ports: [{ port: 1 }, { port: 1, note: 'x' }, { port: 2 }],
    });
    scene.apply('m', { spec: { size: 1, tags: ['a'], ports: [{ port: 1, name: 'n' }] } }, { force: true });
    expect(scene.fields.spec).toEqual({ size: 1, tags: ['a', 'b'], ports: [{ port: 1, name: 'n' }, { port: 2 }] });
  });
});

test('a value that can no longer be shared is owned as a whole by all owners of its parts', () => {
  const applied = gadget({ spec: { tags: ['a'], free: { list: 1 }, color: 'red' } });
  const request = { apiVersion: 'v1', now: '2026-01-01T00:00:00Z', hasStatus: true, force: false };
  const { object: live } = serverSideApply({
    ...request,
    live: undefined,
    applied,
    manager: 'a',
    schema: gadgetSchema,
  });
  const spec = gadgetSchema.properties?.spec;
  const atomic: StructuralSchema = { type: 'array', items: { type: 'string' } };
  const later: StructuralSchema = {
    ...gadgetSchema,
    properties: { ...gadgetSchema.properties, spec: { ...spec, properties: { ...spec?.properties, tags: atomic } } },
  };
  const other = gadget({ spec: { tags: ['b'] } });
  expect(() => serverSideApply({ ...request, live, applied: other, manager: 'b', schema: later })).toThrow(
    '1 conflict: conflict with "a": .spec.tags',
  );
  const { managedFields } = serverSideApply({
    ...request,
    live,
    applied: other,
    manager: 'b',
    schema: later,
    force: true,
  });
  expect(managedFields.map((entry) => entry.fieldsV1)).toEqual([
    { 'f:spec': { 'f:color': {}, 'f:free': { 'f:list': {} } } },
    { 'f:spec': { 'f:tags': {} } },
  ]);
});
