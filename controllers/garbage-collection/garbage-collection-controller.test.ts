import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { namespaceKind } from '../../src/resource/kinds/core/namespace.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { eventV1Kind, eventV1Translation } from '../../src/resource/kinds/events/event-v1.ts';
import type { KubernetesObject, ObjectMeta, OwnerReference } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import { widgetKind } from '../../src/resource/schema/testing.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import type { PropagationPolicy } from '../../src/resource/storage/storage.ts';
import { TranslatedStorage } from '../../src/resource/storage/translated-storage.ts';
import { objectBench, refer } from '../testing-objects.ts';
import { type GarbageCollectionOptions, garbageCollectionController } from './garbage-collection-controller.ts';

function bench(options: Partial<GarbageCollectionOptions> = {}, time: Clock = systemClock) {
  const objects = objectBench(time);
  const { client, registry, clock, recorder, manager } = objects;
  manager.addController(garbageCollectionController({ client, registry, clock, recorder, ...options }));
  const create = (name: string, owners: readonly OwnerReference[] = [], metadata: Partial<ObjectMeta> = {}) =>
    client.create(configMapKind, { metadata: { name, ownerReferences: [...owners], ...metadata } as never });
  return {
    ...objects,
    create,
    remove: (name: string, propagationPolicy: PropagationPolicy = 'Background') =>
      client.delete(configMapKind, { name }, { propagationPolicy }),
    names: async () => (await client.list(configMapKind)).items.map(({ metadata }) => metadata.name),
    owners: async (name: string) =>
      ((await client.get(configMapKind, { name })).metadata.ownerReferences ?? []).map((owner) => owner.name),
  };
}

describe('background', () => {
  test('an object is deleted with its last owner, and its own dependents too', async () => {
    await using at = bench();
    const { create, remove, names, owners, manager, errors } = at;
    const [a, b] = [await create('a'), await create('b')];
    const c = await create('c', [refer(a), refer(b)]);
    await create('d', [refer(c)]);
    await manager.start();
    await remove('a');
    await manager.idle();
    expect(await names()).toEqual(['b', 'c', 'd']);
    expect(await owners('c')).toEqual(['b']);
    await remove('b');
    await manager.idle();
    expect(await names()).toEqual([]);
    expect(errors).toEqual([]);
  });

  test('an owner is identified by its uid, not by its name', async () => {
    await using at = bench();
    const { create, names, manager } = at;
    const a = await create('a');
    await create('b', [{ ...refer(a), uid: 'another' }]);
    await manager.start();
    await manager.idle();
    expect(await names()).toEqual(['a']);
  });

  test('an object that is created after the deletion of its owner is deleted too', async () => {
    await using at = bench();
    const { create, remove, names, manager } = at;
    const a = await create('a');
    await manager.start();
    await remove('a');
    await create('b', [refer(a)]);
    await manager.idle();
    expect(await names()).toEqual([]);
  });

  test('an object that owns itself stays', async () => {
    await using at = bench();
    const { create, names, manager, client, remove } = at;
    const a = await create('a');
    await client.update(configMapKind, { ...a, metadata: { ...a.metadata, ownerReferences: [refer(a)] } });
    await manager.start();
    await manager.idle();
    expect(await names()).toEqual(['a']);
    await remove('a', 'Foreground');
    await manager.idle();
    expect(await names()).toEqual([]);
  });
});

describe('foreground', () => {
  test('blocking dependents are deleted first, at any depth, and wait for their own finalizers', async () => {
    await using at = bench();
    const { create, remove, names, manager, client } = at;
    const a = await create('a');
    const b = await create('b', [refer(a)]);
    const c = await create('c', [refer(b)], { finalizers: ['example.org/slow'] });
    await manager.start();
    await remove('a', 'Foreground');
    await manager.idle();
    expect(await names()).toEqual(['a', 'b', 'c']);
    const held = await client.get(configMapKind, { name: 'c' });
    expect(held.metadata.uid).toBe(c.metadata.uid);
    await client.update(configMapKind, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    await manager.idle();
    expect(await names()).toEqual([]);
  });

  test('a dependent with another owner stays and drops the reference; a dependent that does not block does not delay the owner', async () => {
    await using at = bench();
    const { create, remove, names, owners, manager } = at;
    const [a, other] = [await create('a'), await create('other')];
    await create('shared', [refer(a), refer(other)]);
    await create('loose', [refer(a, false)], { finalizers: ['example.org/slow'] });
    await manager.start();
    await remove('a', 'Foreground');
    await manager.idle();
    expect(await names()).toEqual(['loose', 'other', 'shared']);
    expect(await owners('shared')).toEqual(['other']);
  });

  test('a cycle of objects that wait for each other is broken', async () => {
    await using at = bench();
    const { create, remove, names, manager, client } = at;
    const a = await create('a');
    const b = await create('b', [refer(a)]);
    const c = await create('c', [refer(b)]);
    await client.update(configMapKind, { ...a, metadata: { ...a.metadata, ownerReferences: [refer(c)] } });
    await manager.start();
    await remove('b', 'Foreground');
    await manager.idle();
    expect(await names()).toEqual([]);
  });
});

test('orphans stay without a reference to their owner', async () => {
  await using at = bench();
  const { create, remove, names, owners, manager } = at;
  const a = await create('a');
  const b = await create('b', [refer(a)]);
  await create('c', [refer(b)]);
  await manager.start();
  await remove('a', 'Orphan');
  await manager.idle();
  expect(await names()).toEqual(['b', 'c']);
  expect(await owners('b')).toEqual([]);
  expect(await owners('c')).toEqual(['b']);
});

test('a deletion that began before a restart is completed after it', async () => {
  await using at = bench();
  const { create, remove, names, manager } = at;
  const [a, b, c] = [await create('a'), await create('b'), await create('c')];
  await create('of-a', [refer(a)]);
  await create('of-b', [refer(b)]);
  await create('of-c', [refer(c)]);
  await remove('a');
  await remove('b', 'Foreground');
  await remove('c', 'Orphan');
  await manager.start();
  await manager.idle();
  expect(await names()).toEqual(['of-c']);
});

describe('namespaces', () => {
  test('an owner in another namespace does not count', async () => {
    await using at = bench();
    const { create, names, events, manager } = at;
    const a = await create('a', [], { namespace: 'elsewhere' });
    await create('b', [refer(a)]);
    await manager.start();
    await manager.idle();
    expect(await names()).toEqual(['a']);
    expect(await events('b')).toEqual([
      `OwnerRefInvalidNamespace: ownerRef ConfigMap.v1 "a", uid ${a.metadata.uid}, does not exist in namespace "default"`,
    ]);
  });

  test('a cluster-scoped owner may have dependents everywhere, a cluster-scoped dependent no owner in a namespace', async () => {
    await using at = bench();
    const { create, names, events, manager, client } = at;
    const room = await client.create(namespaceKind, { metadata: { name: 'room' }, spec: {} });
    const a = await create('a', [refer(room)]);
    const metadata = { name: 'odd', ownerReferences: [refer(a)] };
    await client.create(namespaceKind, { metadata, spec: {} });
    await manager.start();
    await manager.idle();
    expect(await names()).toEqual(['a']);
    expect(await client.find(namespaceKind, { name: 'odd' })).toBeDefined();
    expect(await events('odd')).toEqual([expect.stringContaining('does not exist in namespace ""')]);
  });
});

describe('kinds are added and removed', () => {
  const gadgetKind = {
    ...widgetKind,
    kind: 'Gadget',
    plural: 'gadgets',
    shortNames: [],
  } as unknown as typeof widgetKind;

  test('objects of a kind that was added later are collected, and own others', async () => {
    await using at = bench();
    const { create, names, remove, manager, client, registry, memory } = at;
    const a = await create('a');
    await manager.start();
    registry.register(memory(gadgetKind as unknown as Kind));
    await settle();
    const gadget = {
      apiVersion: gadgetKind.apiVersion,
      kind: 'Gadget',
      metadata: { name: 'g', ownerReferences: [refer(a)] },
    };
    const stored = await registry.storage(gadgetKind).create(
      { actor: { name: 'anna' }, face: 'cli' },
      {
        ...gadget,
        metadata: { ...gadget.metadata, namespace: 'default' },
        spec: { size: 1 },
      },
    );
    await create('b', [refer(stored)]);
    await manager.idle();
    expect(await names()).toEqual(['a', 'b']);
    await remove('a');
    await manager.idle();
    expect(await names()).toEqual([]);
    expect((await client.list(gadgetKind)).items).toEqual([]);
  });

  test('a removed kind is no longer followed, and its objects do not count as deleted', async () => {
    await using at = bench();
    const { create, names, manager, client, registry, errors, events } = at;
    const widget = await client.create(widgetKind, { metadata: { name: 'w' }, spec: {} });
    await manager.start();
    registry.unregister(widgetKind as unknown as Kind);
    await settle();
    await create('a', [refer(widget)]);
    await manager.idle();
    expect(await names()).toEqual(['a']);
    expect(await events('a')).toEqual([expect.stringMatching(/^OwnerKindUnknown: .*Widget/)]);
    expect(manager.waiting()).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  test('the dependents of objects that were deleted before their kind was removed are collected', async () => {
    await using at = bench();
    const { create, names, manager, client, registry } = at;
    const widget = await client.create(widgetKind, { metadata: { name: 'w' }, spec: {} });
    await create('a', [refer(widget)]);
    await manager.start();
    await manager.idle();
    await client.delete(widgetKind, { name: 'w' });
    registry.unregister(widgetKind as unknown as Kind);
    await manager.idle();
    expect(await names()).toEqual([]);
  });
});

test('an owner that may exist unseen keeps its dependents', async () => {
  await using at = bench({ mayBeHidden: (kind, { name }) => kind.kind === 'ConfigMap' && name.startsWith('hidden') });
  const { create, names, manager, remove } = at;
  const [hidden, a] = [await create('hidden'), await create('a')];
  await create('b', [refer(hidden)]);
  await create('c', [refer(a)]);
  await manager.start();
  await remove('hidden');
  await remove('a');
  await manager.idle();
  expect(await names()).toEqual(['b']);
});

/** Secrets that a rule keeps. */
class Keeping<T extends KubernetesObject> extends MemoryStorage<T> {
  override delete(): never {
    throw new SluiceError('Refused', 'it is published');
  }
}

test('an owner of a kind that is not followed is checked again', async () => {
  const clock = new ManualClock();
  await using at = bench({}, clock);
  const { create, names, manager, client, registry } = at;
  registry.register(new TranslatedStorage(eventV1Kind, registry.storage(eventKind), eventV1Translation));
  const event = await client.create(eventKind, { metadata: { name: 'e' }, involvedObject: {} });
  await create('a', [refer(event)]);
  await manager.start();
  await manager.idle();
  await client.delete(eventKind, { name: 'e' });
  await manager.idle();
  expect(await names()).toEqual(['a']);
  await clock.advanceAsync(10 * 60_000);
  await manager.idle();
  expect(await names()).toEqual([]);
});

test('an object whose deletion is refused stays, with one event', async () => {
  await using at = bench();
  const { create, events, manager, client, registry, clock, log, remove, errors } = at;
  registry.unregister(secretKind as unknown as Kind);
  registry.register(new Keeping(secretKind as unknown as Kind, { clock, log }));
  const a = await create('a');
  const secret = await client.create(secretKind, { metadata: { name: 's', ownerReferences: [refer(a)] } });
  await manager.start();
  await remove('a');
  await manager.idle();
  // Checked again without a second event.
  await client.update(secretKind, { ...secret, metadata: { ...secret.metadata, labels: { look: 'again' } } });
  await manager.idle();
  expect(await client.find(secretKind, { name: 's' })).toBeDefined();
  expect(await events('s')).toEqual(['NotCollected: it is published']);
  expect(manager.waiting()).toMatchObject([{ reason: 'it is published' }]);
  expect(errors).toEqual([]);
});
