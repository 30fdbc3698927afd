import { describe, expect, test } from 'vitest';
import type { ManagedFieldsEntry } from '../object/object.ts';
import { gadget, gadgetSchema, Scene } from './testing.ts';
import { trackUpdate } from './track-update.ts';

describe('trackUpdate', () => {
  test('a create owns all, containers among them', () => {
    const scene = new Scene();
    scene.update('curl', { metadata: { labels: { a: '1' } }, spec: { tags: ['x'], selector: { s: '1' } } });
    expect(scene.owners).toEqual({
      'curl Update': {
        'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
        'f:spec': { '.': {}, 'f:tags': { '.': {}, 'v:"x"': {} }, 'f:selector': {} },
      },
    });
  });

  test('changed fields change their owner, removed fields leave all owners', () => {
    const scene = new Scene();
    scene.apply('a', { spec: { color: 'red', size: 1, mode: 'm' } });
    scene.update('u', { spec: { color: 'blue', size: 1 } });
    expect(scene.owners).toEqual({
      'a Apply': { 'f:spec': { 'f:size': {} } },
      'u Update': { 'f:spec': { 'f:color': {} } },
    });
    expect(scene.times).toEqual({ a: '01', u: '02' });
    scene.update('v', { spec: { color: 'blue' } });
    expect(scene.owners).toEqual({ 'u Update': { 'f:spec': { 'f:color': {} } } });
    expect(scene.times).toEqual({ u: '02' });
  });

  test('the same object keeps its entries as they are', () => {
    const scene = new Scene();
    const fields = { spec: { color: 'red', tags: ['a'] } };
    scene.update('u', fields);
    const entry = scene.object?.metadata.managedFields?.[0];
    scene.update('v', structuredClone(fields));
    expect(scene.object?.metadata.managedFields).toEqual([entry]);
    expect(scene.object?.metadata.managedFields?.[0]).toBe(entry);
  });

  test('a manager has an entry for each sub-resource', () => {
    const scene = new Scene();
    scene.update('u', { spec: { size: 1 } });
    scene.update('u', { spec: { size: 2 }, status: { phase: 'x' } }, 'status');
    expect(scene.object?.metadata.managedFields).toEqual([
      expect.objectContaining({ manager: 'u', fieldsV1: { 'f:spec': { '.': {}, 'f:size': {} } } }),
      expect.objectContaining({ subresource: 'status', fieldsV1: { 'f:status': { '.': {}, 'f:phase': {} } } }),
    ]);
  });

  test('at most ten updaters are kept, the oldest become one', () => {
    const scene = new Scene();
    scene.apply('applier', { spec: { size: 1 } });
    const labels: Record<string, string> = {};
    for (let index = 1; index <= 13; index += 1) {
      labels[`l${index}`] = 'x';
      scene.update(`u${index}`, { metadata: { labels: { ...labels } }, spec: { size: 1 } });
    }
    const { managedFields = [] } = scene.object?.metadata ?? {};
    expect(managedFields.map((entry) => entry.manager)).toEqual([
      'applier',
      'ancient-changes',
      ...['u5', 'u6', 'u7', 'u8', 'u9', 'u10', 'u11', 'u12', 'u13'],
    ]);
    expect(scene.owners['ancient-changes Update']).toEqual({
      'f:metadata': { 'f:labels': { '.': {}, 'f:l1': {}, 'f:l2': {}, 'f:l3': {}, 'f:l4': {} } },
    });
    expect(scene.times['ancient-changes']).toBe('05');
  });

  describe('managedFields that a client sends', () => {
    const entry: ManagedFieldsEntry = {
      manager: 'kubectl',
      operation: 'Apply',
      apiVersion: 'v1',
      time: '2020-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:color': {}, 'f:size': {} } },
    };
    const sent = (managedFields: unknown, spec: unknown = { color: 'red' }, subResource?: string) => {
      const scene = new Scene();
      scene.update('u', { spec: { color: 'red' } });
      scene.update('v', { metadata: { managedFields }, spec }, subResource);
      return scene;
    };

    test('are accepted, and then validated by the changes', () => {
      expect(sent([entry]).object?.metadata.managedFields).toEqual([entry]);
      expect(sent([entry], { color: 'blue' }).owners).toEqual({
        'kubectl Apply': { 'f:spec': { 'f:size': {} } },
        'v Update': { 'f:spec': { 'f:color': {} } },
      });
    });

    test.each([[[]], [[{}]]])('%j ends the tracking until the next apply', (managedFields) => {
      const scene = sent(managedFields);
      expect(scene.object?.metadata.managedFields).toEqual([]);
      scene.update('w', { spec: { color: 'green' } });
      expect(scene.object?.metadata.managedFields).toEqual([]);
      scene.apply('a', { spec: { size: 1 } });
      expect(Object.keys(scene.owners)).toEqual(['a Apply', 'before-first-apply Update']);
    });

    test.each([
      [[{ ...entry, operation: 'Other' }]],
      [[{ ...entry, fieldsType: 'FieldsV2' }]],
      [[{ ...entry, apiVersion: '' }]],
    ])('%j makes no sense and is ignored', (managedFields) => {
      expect(sent(managedFields).owners).toEqual({ 'u Update': { 'f:spec': { '.': {}, 'f:color': {} } } });
    });

    test('are ignored with a sub-resource', () => {
      expect(sent([entry], { color: 'red' }, 'status').owners).toEqual({
        'u Update': { 'f:spec': { '.': {}, 'f:color': {} } },
      });
    });

    test('kubectl can migrate from client-side to server-side apply', () => {
      const scene = new Scene();
      const fields = { metadata: { annotations: { last: 'x' } }, spec: { color: 'red', size: 1 } };
      scene.update('kubectl-client-side-apply', fields);
      expect(() => scene.apply('kubectl', { spec: { color: 'blue' } })).toThrow('1 conflict');
      const [old] = scene.object?.metadata.managedFields ?? [];
      const migrated = [{ ...old, manager: 'kubectl', operation: 'Apply' }];
      scene.update('kubectl', { ...fields, metadata: { ...fields.metadata, managedFields: migrated } });
      scene.apply('kubectl', { metadata: fields.metadata, spec: { color: 'blue' } });
      expect(scene.fields).toEqual({ metadata: fields.metadata, spec: { color: 'blue' } });
      expect(Object.keys(scene.owners)).toEqual(['kubectl Apply']);
    });
  });

  test('an object without tracked fields stays so', () => {
    const before = gadget({ spec: { size: 1 } });
    const after = gadget({ spec: { size: 2 } });
    const update = { before, after, schema: gadgetSchema, manager: 'u', apiVersion: 'v1', now: '', hasStatus: true };
    expect(trackUpdate(update)).toEqual([]);
  });
});
