import { expect, test } from 'vitest';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { SelectedObjects } from './selected-objects.ts';

test('objects are followed in the namespaces of variants that select some of their kind, and no longer', async () => {
  const handlers = new Map<string, (event: InformerEvent<never>) => void>();
  const released: unknown[] = [];
  const woken: string[] = [];
  const kinds = { kindOf: () => configMapKind, kinds: () => [configMapKind], onChange: () => () => undefined };
  const selected = new SelectedObjects({ list: async () => ({ items: [] }) } as never, kinds);
  selected.source.start({
    ...{ prioritize: () => undefined, track: () => undefined },
    enqueue: ({ name }) => woken.push(name),
    release: ({ kind }, selection) => released.push([kind, selection]),
    informer: (kind, { namespace = '' } = {}) => {
      const addHandler = (handler: never) => {
        handlers.set(namespace, handler);
        return () => handlers.delete(namespace);
      };
      return { kind, synced: true, whenSynced: async () => undefined, addHandler } as never;
    },
  });
  const select = async (namespace: string, variant: string, ...names: readonly string[]) => {
    const reading = selected.readingFor({ namespace, name: variant });
    for (const name of names) await reading.read({ apiVersion: 'v1', kind: 'ConfigMap', name });
    reading.end();
  };
  const change = (namespace: string, name: string) => {
    woken.length = 0;
    handlers.get(namespace)?.({ type: 'delete', object: { metadata: { namespace, name } } } as never);
    return woken;
  };
  for (let count = 0; count < 20; count += 1) {
    await select(`pr-${count}`, 'v', 'c');
    selected.forget({ namespace: `pr-${count}`, name: 'v' });
  }
  expect(handlers.size).toBe(0);
  expect(released).toHaveLength(20);
  expect(released[7]).toEqual(['ConfigMap', { namespace: 'pr-7' }]);
  await select('default', 'a', 'one', 'two');
  await select('default', 'b', 'two');
  expect(change('default', 'two')).toEqual(['a', 'b']);
  // Another one of the same kind keeps it followed.
  await select('default', 'a', 'three');
  selected.forget({ namespace: 'default', name: 'b' });
  expect(change('default', 'three')).toEqual(['a']);
  for (const name of ['one', 'two']) expect(change('default', name)).toEqual([]);
  await select('default', 'a');
  expect(handlers.size).toBe(0);
  await select('default', 'a', 'one');
  expect(change('default', 'one')).toEqual(['a']);
});
