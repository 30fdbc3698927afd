import { describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { customResourceDefinitionKind } from '../../src/resource/kinds/apiextensions/custom-resource-definition.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { ObjectStorage } from '../../src/resource/storage/memory/object-storage.ts';
import { topicOf } from '../../src/resource/storage/memory/object-storage.ts';
import { garbageCollectionController } from '../garbage-collection/garbage-collection-controller.ts';
import { objectBench, refer } from '../testing-objects.ts';
import { CustomKinds } from './custom-kinds.ts';
import { customResourceDefinitionController } from './custom-resource-definition-controller.ts';

const FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

interface DefinitionOptions {
  readonly kind?: string;
  readonly plural?: string;
  readonly shortNames?: string[];
  readonly versions?: readonly { name: string; served?: boolean; storage?: boolean; maximum?: number }[];
}

function gateways({
  kind = 'Gateway',
  plural = 'gateways',
  shortNames,
  versions = [{ name: 'v1' }],
}: DefinitionOptions = {}) {
  return {
    metadata: { name: `${plural}.example.org` },
    spec: {
      group: 'example.org',
      scope: 'Namespaced' as const,
      names: { plural, kind, ...(shortNames === undefined ? {} : { shortNames }) },
      versions: versions.map(({ name, served = true, storage = versions.length === 1, maximum = 10 }) => ({
        ...{ name, served, storage },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer', maximum } } } },
          },
        },
        subresources: { status: {} },
      })),
    },
  };
}

function bench() {
  const clock = new ManualClock();
  const objects = objectBench(clock);
  const { client, registry, manager, memory } = objects;
  const open = new Map<string, ObjectStorage>();
  const kinds = new CustomKinds({
    registry,
    openStorage: (kind) => {
      const storage = open.get(topicOf(kind)) ?? memory(kind);
      open.set(topicOf(kind), storage);
      return storage;
    },
    closeStorage: () => undefined,
  });
  manager.addController(customResourceDefinitionController({ client, clock, kinds }));
  const kind = (version = 'v1', plural = 'gateways') => registry.find('example.org', version, plural)?.kind as Kind;
  return {
    ...objects,
    clock,
    kinds,
    kind,
    define: (wanted?: DefinitionOptions) => client.create(customResourceDefinitionKind, gateways(wanted)),
    redefine: async (wanted: DefinitionOptions) => {
      const { metadata, spec } = gateways(wanted);
      const live = await client.get(customResourceDefinitionKind, metadata);
      await client.update(customResourceDefinitionKind, { ...live, spec: spec as never });
    },
    find: (plural = 'gateways') => client.find(customResourceDefinitionKind, { name: `${plural}.example.org` }),
    undefine: (plural = 'gateways') => client.delete(customResourceDefinitionKind, { name: `${plural}.example.org` }),
    make: (name: string, size: number, version = 'v1', more: object = {}) =>
      client.create(kind(version), { metadata: { name, ...more }, spec: { size } }),
  };
}

describe('a definition', () => {
  test('is served, reports it, and is kept until its objects are deleted', async () => {
    await using at = bench();
    const { manager } = at;
    await manager.start();
    await at.define({ shortNames: ['gw'] });
    await manager.idle();
    const found = await at.find();
    expect(found?.metadata.finalizers).toEqual([FINALIZER]);
    expect(found?.status).toMatchObject({
      acceptedNames: {
        plural: 'gateways',
        singular: 'gateway',
        kind: 'Gateway',
        listKind: 'GatewayList',
        shortNames: ['gw'],
      },
      storedVersions: ['v1'],
    });
    const conditions = found?.status?.conditions;
    expect(findCondition(conditions, 'NamesAccepted')).toMatchObject({ status: 'True', reason: 'NoConflicts' });
    expect(findCondition(conditions, 'Established')).toMatchObject({ status: 'True', reason: 'InitialNamesAccepted' });
    expect(at.registry.lookup('gw')).toBe(at.kind());
    await at.make('a', 3);
    await expect(at.make('b', 11)).rejects.toMatchObject({ code: 'InvalidInput' });
    expect((await at.client.list(at.kind())).items).toMatchObject([
      { apiVersion: 'example.org/v1', kind: 'Gateway', metadata: { name: 'a' }, spec: { size: 3 } },
    ]);
    expect(at.errors).toEqual([]);
  });

  test('that changes is served as changed, and stored objects stay, including a write in flight', async () => {
    await using at = bench();
    const { manager, client } = at;
    await manager.start();
    await at.define();
    await manager.idle();
    await at.make('a', 3);
    const [old, before] = [at.kind(), at.registry.storage(at.kind())];
    const [storageBefore, objectB] = [
      before,
      old.complete({ metadata: { name: 'b', namespace: 'default' }, spec: { size: 4 } }),
    ];
    await at.redefine({ versions: [{ name: 'v1', maximum: 20 }], shortNames: ['gw'] });
    await manager.idle();
    expect(at.kind()).not.toBe(old);
    expect(at.registry.lookup('gw')).toBe(at.kind());
    await at.make('c', 15);
    // A request had looked the storage up before the kind was redefined.
    await storageBefore.create({ actor: { name: 'anna' }, face: 'api' }, objectB);
    const { items } = await client.list(at.kind());
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c']);
    expect(at.errors).toEqual([]);
  });

  test('is deleted with its objects, their dependents, and its kind', async () => {
    await using at = bench();
    const { manager, client, registry, clock, recorder } = at;
    manager.addController(garbageCollectionController({ client, registry, clock, recorder }));
    await manager.start();
    await at.define();
    await manager.idle();
    await settle();
    const made = await at.make('a', 3);
    const held = await at.make('b', 3, 'v1', { finalizers: ['example.org/slow'] });
    await client.create(configMapKind, { metadata: { name: 'm', ownerReferences: [refer(made)] } });
    const kind = at.kind();
    await at.undefine();
    await clock.advanceAsync(100);
    expect(findCondition((await at.find())?.status?.conditions, 'Terminating')).toMatchObject({
      status: 'True',
      reason: 'InstanceDeletionInProgress',
    });
    expect((await client.list(kind)).items).toHaveLength(1);
    await expect(at.make('c', 1)).rejects.toThrow(/create not allowed while custom resource definition is terminating/);

    const live = await client.get(kind, { name: held.metadata.name });
    await client.update(kind, { ...live, metadata: { ...live.metadata, finalizers: [] } });
    await clock.advanceAsync(3000);
    await settle();
    await manager.idle();
    expect(await at.find()).toBeUndefined();
    expect(at.kind()).toBeUndefined();
    expect(await client.find(configMapKind, { name: 'm' })).toBeUndefined();
    expect(at.errors).toEqual([]);

    // A definition of the same name has none of the old objects.
    await at.define();
    await manager.idle();
    expect((await client.list(at.kind())).items).toEqual([]);
  });

  test('without its finalizer is also deleted with its objects', async () => {
    await using at = bench();
    const { manager, client } = at;
    await manager.start();
    const { metadata } = await at.define();
    await manager.idle();
    await at.make('a', 3);
    await manager.stop();
    const live = await client.get(customResourceDefinitionKind, metadata);
    await client.update(customResourceDefinitionKind, { ...live, metadata: { ...live.metadata, finalizers: [] } });
    await at.undefine();
    const controller = customResourceDefinitionController({ client, clock: at.clock, kinds: at.kinds });
    await controller.reconcile({ name: metadata.name }, { signal: new AbortController().signal, failures: 0 });
    expect(at.kind()).toBeUndefined();
  });
});

describe('versions', () => {
  const both = [
    { name: 'v1', storage: true },
    { name: 'v2', maximum: 20 },
  ];

  test('show the same objects, each under its own name', async () => {
    await using at = bench();
    const { manager, client } = at;
    await manager.start();
    await at.define({ versions: both });
    await manager.idle();
    const [v1, v2] = [at.kind('v1'), at.kind('v2')];
    const from = await client.list(v2);
    const end = new AbortController();
    const events = client
      .watch(v2, { resourceVersion: from.resourceVersion, signal: end.signal })
      [Symbol.asyncIterator]();
    const made = await at.make('a', 3, 'v1');
    expect((await events.next()).value).toMatchObject({ type: 'ADDED', object: { apiVersion: 'example.org/v2' } });
    end.abort();
    const seen = await client.get(v2, { name: 'a' });
    expect(seen).toMatchObject({ apiVersion: 'example.org/v2', metadata: { uid: made.metadata.uid } });
    expect(await client.update(v2, { ...seen, spec: { size: 15 } } as never)).toMatchObject({
      apiVersion: 'example.org/v2',
      metadata: { generation: 2 },
    });
    expect(await client.get(v1, { name: 'a' })).toMatchObject({ apiVersion: 'example.org/v1', spec: { size: 15 } });
    await client.delete(v2, { name: 'a' });
    expect(await client.find(v1, { name: 'a' })).toBeUndefined();
  });

  test('are added and removed, and the objects stay', async () => {
    await using at = bench();
    const { manager, client } = at;
    await manager.start();
    await at.define();
    await manager.idle();
    await at.make('a', 3, 'v1');
    await at.redefine({
      versions: [
        { name: 'v1', served: false, storage: false },
        { name: 'v2', storage: true },
      ],
    });
    await manager.idle();
    expect(at.kind('v1')).toBeUndefined();
    const moved = await client.get(at.kind('v2'), { name: 'a' });
    expect(moved).toMatchObject({ apiVersion: 'example.org/v2', spec: { size: 3 } });
    expect((await at.find())?.status?.storedVersions).toEqual(['v1', 'v2']);
    // Stored in another version, it is still the same object.
    const written = await client.update(at.kind('v2'), {
      ...moved,
      metadata: { ...moved.metadata, labels: { a: 'b' } },
    });
    expect(written.metadata.generation).toBe(1);
  });

  test('one collector is enough for all of them', async () => {
    await using at = bench();
    const { manager, client, registry, clock, recorder } = at;
    manager.addController(garbageCollectionController({ client, registry, clock, recorder }));
    await manager.start();
    await at.define({ versions: both });
    await manager.idle();
    await clock.advanceAsync(1);
    const owner = await client.create(configMapKind, { metadata: { name: 'm' } });
    await at.make('a', 3, 'v2', { ownerReferences: [refer(owner)] });
    // The version that the informer follows is removed.
    await at.redefine({
      versions: [
        { name: 'v1', served: false, storage: true },
        { name: 'v2', maximum: 20 },
      ],
    });
    await settle();
    await settle();
    await manager.idle();
    await clock.advanceAsync(1);
    await client.delete(configMapKind, { name: 'm' });
    await manager.idle();
    expect((await client.list(at.kind('v2'))).items).toEqual([]);
    expect(at.errors).toEqual([]);
  });
});

describe('names', () => {
  test('that another definition uses are refused until that one is deleted', async () => {
    await using at = bench();
    const { manager } = at;
    await manager.start();
    await at.define({ shortNames: ['gw'] });
    await manager.idle();
    await at.define({ plural: 'doors', kind: 'Door', shortNames: ['gw'] });
    await manager.idle();
    const conditions = (await at.find('doors'))?.status?.conditions;
    expect(findCondition(conditions, 'NamesAccepted')).toMatchObject({
      status: 'False',
      reason: 'ShortNamesConflict',
      message: '"gw" is already in use',
    });
    expect(findCondition(conditions, 'Established')).toMatchObject({ status: 'False', reason: 'NotAccepted' });
    expect(at.kind('v1', 'doors')).toBeUndefined();
    await at.undefine();
    await manager.idle();
    expect(at.kind('v1', 'doors')).toBeDefined();
    expect(findCondition((await at.find('doors'))?.status?.conditions, 'Established')?.status).toBe('True');
  });

  test('of built-in kinds are refused, and the kind is served as before', async () => {
    await using at = bench();
    const { manager, client } = at;
    await manager.start();
    const before = at.registry.find('config.porch.kpt.dev', 'v1alpha1', 'repositories');
    const { spec } = gateways({ plural: 'repositories', kind: 'Repository', versions: [{ name: 'v1alpha1' }] });
    const name = 'repositories.config.porch.kpt.dev';
    await client.create(customResourceDefinitionKind, {
      metadata: { name },
      spec: { ...spec, group: 'config.porch.kpt.dev' },
    });
    await manager.idle();
    const found = await client.get(customResourceDefinitionKind, { name });
    expect(findCondition(found.status?.conditions, 'NamesAccepted')).toMatchObject({
      status: 'False',
      reason: 'PluralConflict',
    });
    expect(at.registry.find('config.porch.kpt.dev', 'v1alpha1', 'repositories')).toBe(before);
    await client.delete(customResourceDefinitionKind, { name });
    await manager.idle();
    expect(await client.find(customResourceDefinitionKind, { name })).toBeUndefined();
    expect(at.registry.find('config.porch.kpt.dev', 'v1alpha1', 'repositories')).toBe(before);
  });
});

test('established definitions are served again before anything else runs', async () => {
  await using at = bench();
  const made = await at.define();
  at.kinds.restore([made]);
  expect(at.kind()).toBeUndefined();
  const condition = { type: 'Established', status: 'True', reason: 'A', message: '', lastTransitionTime: '' } as const;
  at.kinds.restore([{ ...made, status: { conditions: [condition] } }]);
  expect(at.kind()).toBeDefined();
});
