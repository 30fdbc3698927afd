import { expect, test } from 'vitest';
import type { Stored } from '../resource/object/object.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import { specChanged, specOrMetadataChanged } from './predicates.ts';

const metadata = {
  name: 'a',
  uid: 'u',
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
  generation: 1,
};
const old = { ...widgetKind.complete({ metadata, spec: {} }), metadata } as Stored<Widget>;
const changed = (change: Partial<Widget['metadata']>, rest: Partial<Widget> = {}): Stored<Widget> => ({
  ...old,
  ...rest,
  metadata: { ...old.metadata, resourceVersion: '2', ...change } as Stored<Widget>['metadata'],
});

test.each([
  ['status', changed({}, { status: { ready: true } }), false, false],
  ['generation', changed({ generation: 2 }), true, true],
  ['deletion', changed({ deletionTimestamp: '2026-01-02T00:00:00Z' }), true, true],
  ['labels', changed({ labels: { a: 'b' } }), false, true],
  ['annotations', changed({ annotations: { a: 'b' } }), false, true],
  ['finalizers', changed({ finalizers: ['a/b'] }), false, true],
  ['owners', changed({ ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: 'n', uid: 'x' }] }), false, true],
])('a change of %s', (_what, object, spec, either) => {
  const event = { type: 'update', object, old } as const;
  expect(specChanged(event)).toBe(spec);
  expect(specOrMetadataChanged(event)).toBe(either);
});

test('additions and deletions always count', () => {
  for (const type of ['add', 'delete'] as const) expect(specOrMetadataChanged({ type, object: old })).toBe(true);
});
