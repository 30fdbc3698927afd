import { expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { type Namespace, namespaceKind } from '../../src/resource/kinds/core/namespace.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { eventV1Kind, eventV1Translation } from '../../src/resource/kinds/events/event-v1.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import type { KubernetesObject } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { widgetKind } from '../../src/resource/schema/testing.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { TranslatedStorage } from '../../src/resource/storage/translated-storage.ts';
import { objectBench } from '../testing-objects.ts';
import { namespaceController } from './namespace-controller.ts';

function bench() {
  const clock = new ManualClock();
  const objects = objectBench(clock);
  const { client, registry, manager } = objects;
  manager.addController(namespaceController({ client, registry, clock }));
  return {
    ...objects,
    clock,
    make: (name: string) => client.create(namespaceKind, { metadata: { name }, spec: {} }),
    find: (name: string) => client.find(namespaceKind, { name }),
    remove: (name: string) => client.delete(namespaceKind, { name }),
    /** A pass that found objects is followed by another one. */
    rest: async () => {
      await manager.idle();
      await clock.advanceAsync(100);
      await manager.idle();
    },
  };
}

test('the namespaces that clients rely on are created, and every namespace becomes Active', async () => {
  await using at = bench();
  await at.make('a');
  await at.manager.start();
  await at.manager.idle();
  for (const name of ['a', 'default', 'kube-system', 'sluice-system'])
    expect(await at.find(name)).toMatchObject({ status: { phase: 'Active' }, spec: { finalizers: ['kubernetes'] } });
  expect(at.errors).toEqual([]);
});

test('a namespace is deleted with all its objects, and nothing else', async () => {
  await using at = bench();
  const { client } = at;
  await at.make('a');
  for (const namespace of ['a', 'default']) {
    for (let index = 0; index < 100; index += 1)
      await client.create(configMapKind, { metadata: { name: `m${index}`, namespace } });
    await client.create(widgetKind, { metadata: { name: 'w', namespace }, spec: {} });
  }
  await at.manager.start();
  await at.remove('a');
  await at.rest();
  expect(await at.find('a')).toBeUndefined();
  for (const kind of [configMapKind, widgetKind] as unknown as Kind[]) {
    const { items } = await client.list(kind);
    expect(new Set(items.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['default']));
  }
  expect(at.errors).toEqual([]);
});

test('a namespace waits for objects with finalizers, reports them, and checks again', async () => {
  await using at = bench();
  const { client, clock } = at;
  await at.make('a');
  const key = { name: 'm', namespace: 'a' };
  await client.create(configMapKind, { metadata: { ...key, finalizers: ['example.org/slow'] } });
  await at.manager.start();
  await at.remove('a');
  await at.rest();
  const waiting = await at.find('a');
  const message = (type: string) => findCondition((waiting as Namespace).status?.conditions, type);
  expect(waiting?.status?.phase).toBe('Terminating');
  expect(message('NamespaceContentRemaining')).toMatchObject({
    status: 'True',
    reason: 'SomeResourcesRemain',
    message: 'Some resources are remaining: configmaps has 1 resource instances',
  });
  expect(message('NamespaceFinalizersRemaining')).toMatchObject({
    status: 'True',
    message: 'Some content in the namespace has finalizers remaining: example.org/slow in 1 resource instances',
  });
  expect(message('NamespaceDeletionContentFailure')?.status).toBe('False');

  const held = await client.get(configMapKind, key);
  expect(held.metadata.deletionTimestamp).toBeDefined();
  await client.update(configMapKind, { ...held, metadata: { ...held.metadata, finalizers: [] } });
  await clock.advanceAsync(1000);
  await at.rest();
  expect(await at.find('a')).toBeUndefined();
});

test('an event counts once, though it is served in two groups', async () => {
  await using at = bench();
  const { client, registry } = at;
  registry.register(new TranslatedStorage(eventV1Kind, registry.storage(eventKind), eventV1Translation));
  await at.make('a');
  for (const [name, finalizers] of [
    ['held', ['example.org/slow']],
    ['free', []],
  ] as const)
    await client.create(eventV1Kind, { metadata: { name, namespace: 'a', finalizers }, regarding: { namespace: 'a' } });
  await at.manager.start();
  await at.remove('a');
  await at.rest();
  expect(findCondition((await at.find('a'))?.status?.conditions, 'NamespaceContentRemaining')).toMatchObject({
    message: 'Some resources are remaining: events has 1 resource instances',
  });
  expect((await client.list(eventV1Kind)).items.map(({ metadata }) => metadata.name)).toEqual(['held']);
});

test('an object whose deletion is refused is reported, and the namespace stays', async () => {
  class Keeping<T extends KubernetesObject> extends MemoryStorage<T> {
    override delete(): never {
      throw new SluiceError('Refused', 'a rule forbids it');
    }
  }
  await using at = bench();
  const { client, registry, clock, log } = at;
  registry.unregister(secretKind as unknown as Kind);
  registry.register(new Keeping(secretKind as unknown as Kind, { clock, log }));
  await at.make('a');
  await client.create(secretKind, { metadata: { name: 's', namespace: 'a' } });
  await at.manager.start();
  await at.remove('a');
  await at.rest();
  expect(findCondition((await at.find('a'))?.status?.conditions, 'NamespaceDeletionContentFailure')).toMatchObject({
    status: 'True',
    reason: 'ContentDeletionFailed',
    message: 'Failed to delete: secrets "s": a rule forbids it',
  });
});

test('package revisions are a view of Git and are not deleted', async () => {
  await using at = bench();
  const { client, registry } = at;
  registry.register(at.memory(packageRevisionKind as unknown as Kind));
  await at.make('a');
  const spec = { repository: 'r', packageName: 'p', workspaceName: 'v1' };
  await client.create(packageRevisionKind, { metadata: { name: 'r.p.v1', namespace: 'a' }, spec });
  await at.manager.start();
  await at.remove('a');
  await at.rest();
  expect(await at.find('a')).toBeUndefined();
  expect((await client.list(packageRevisionKind)).items).toHaveLength(1);
});

test('a namespace that an earlier version stored without its finalizer gets it', async () => {
  await using at = bench();
  const made = await at.make('a');
  await at.client.subResource('finalize').update(namespaceKind, { ...made, spec: { finalizers: [] } });
  await at.manager.start();
  await at.manager.idle();
  expect((await at.find('a'))?.spec.finalizers).toEqual(['kubernetes']);
});
