import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { configMapKind } from '../kinds/core/config-map.ts';
import { invalidValue } from '../object/invalid-object.ts';
import type { KubernetesObject, Stored } from '../object/object.ts';
import type { RequestContext } from '../object/request-context.ts';
import { defineKind } from '../schema/define-kind.ts';
import { type Widget, widgetKind } from '../schema/testing.ts';
import { MemoryStorage } from '../storage/memory/memory-storage.ts';
import { Registry } from '../storage/registry.ts';
import { EventLog } from '../watch/event-log.ts';
import { RegistryClient } from './registry-client.ts';

const zoneKind = defineKind({
  group: 'test.sluice.dev',
  version: 'v1',
  kind: 'Zone',
  plural: 'zones',
  namespaced: false,
  description: 'Has no namespace.',
  spec: z.object({ size: z.int().optional() }),
});

const ruledKind = defineKind({
  ...{ group: 'test.sluice.dev', version: 'v1', kind: 'Ruled', plural: 'ruleds', description: 'Has a rule.' },
  spec: z.object({ size: z.int() }),
  status: z.object({ note: z.string() }),
  strategy: {
    validate: ({ spec }) => (spec.size > 5 ? [invalidValue(['spec', 'size'], spec.size, 'is too large')] : []),
  },
});

/** Notes the caller, and lets a test act before an update is stored. */
class WatchedStorage extends MemoryStorage<Widget> {
  readonly contexts: RequestContext[] = [];
  beforeUpdate: () => Promise<void> = async () => undefined;

  override async update(context: RequestContext, object: Widget): Promise<Stored<Widget>> {
    this.contexts.push(context);
    const act = this.beforeUpdate;
    this.beforeUpdate = async () => undefined;
    await act();
    return super.update(context, object);
  }
}

function setUp() {
  const clock = new ManualClock();
  const log = new EventLog({ clock });
  const registry = new Registry();
  const storage = new WatchedStorage(widgetKind, { clock, log });
  registry.register(storage);
  registry.register(new MemoryStorage(zoneKind, { clock, log }));
  registry.register(new MemoryStorage(configMapKind, { clock, log }));
  return { registry, storage, client: new RegistryClient(registry, { name: 'anna', groups: ['dev'] }, 'cli') };
}

describe('Registry', () => {
  test('finds kinds by any of their names', () => {
    const { registry } = setUp();
    for (const word of ['widgets', 'widget', 'Widget', 'wd', 'widgets.test.sluice.dev', 'WD.test.sluice.dev'])
      expect(registry.lookup(word)).toBe(widgetKind);
    expect(registry.lookup('cm')).toBe(configMapKind);
    for (const word of ['gadgets', 'constructor', '']) expect(registry.lookup(word)).toBeUndefined();
    expect(registry.kindOf({ apiVersion: 'test.sluice.dev/v1', kind: 'Zone' })).toBe(zoneKind);
    expect(registry.kindOf({ apiVersion: 'test.sluice.dev/v2', kind: 'Zone' })).toBeUndefined();
    expect(registry.kinds()).toEqual([widgetKind, zoneKind, configMapKind]);
  });

  test('registers a kind once, and has no storage for others', () => {
    const { registry, storage } = setUp();
    expect(() => registry.register(storage)).toThrow(/registered already/);
    expect(() => new Registry().storage(widgetKind)).toThrow(/no storage is registered/);
  });
});

describe('RegistryClient', () => {
  test('writes the status of an object that was stored before there was a rule, and nothing else of it', async () => {
    const { registry, client } = setUp();
    registry.register(
      new MemoryStorage(ruledKind, { clock: new ManualClock(), log: new EventLog({ clock: new ManualClock() }) }),
    );
    const metadata = { name: 'a', namespace: 'default' };
    const { apiVersion, kind } = ruledKind;
    const context = { actor: { name: 'anna' }, face: 'cli' } as const;
    const old = await registry.storage(ruledKind).create(context, { apiVersion, kind, metadata, spec: { size: 9 } });
    const written = await client.updateStatus(ruledKind, { ...old, spec: { size: 7 }, status: { note: 'x' } });
    expect(written).toMatchObject({ spec: { size: 9 }, status: { note: 'x' } });
    const patched = await client.subResource('status').patch(ruledKind, metadata, { status: { note: 'y' } });
    expect(patched).toMatchObject({ spec: { size: 9 }, status: { note: 'y' } });
    await expect(client.updateStatus(ruledKind, { ...old, status: { note: 3 } } as never)).rejects.toThrow(
      'status.note',
    );
    await expect(
      client.update(ruledKind, { ...patched, metadata: { ...metadata, labels: { a: 'b' } } }),
    ).rejects.toThrow('is too large');
  });

  test('uses the namespace default, and none where there are none', async () => {
    const { client } = setUp();
    await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    expect((await client.get(widgetKind, { name: 'a' })).metadata.namespace).toBe('default');
    expect(await client.find(widgetKind, { namespace: 'other', name: 'a' })).toBeUndefined();
    const zone = await client.create(zoneKind, { metadata: { name: 'z' }, spec: {} });
    expect(zone.metadata.namespace).toBeUndefined();
    expect((await client.get(zoneKind, { namespace: 'ignored', name: 'z' })).metadata.uid).toBe(zone.metadata.uid);
    const wrong = client.create(zoneKind, { metadata: { name: 'y', namespace: 'x' }, spec: {} });
    await expect(wrong).rejects.toThrow('metadata.namespace: Invalid value: "x": zones have no namespace');
  });

  test('validates what is written', async () => {
    const { client } = setUp();
    const made = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const wrong = { ...made, spec: { size: 'x' as unknown as number } };
    await expect(client.update(widgetKind, wrong)).rejects.toMatchObject({ code: 'InvalidInput' });
    const patch = client.patch(widgetKind, { name: 'a' }, { metadata: 5 });
    await expect(patch).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  test('selects by text and by object', async () => {
    const { client } = setUp();
    for (const [name, tier] of [
      ['a', 'front'],
      ['b', 'back'],
      ['c', 'back'],
    ] as const)
      await client.create(widgetKind, { metadata: { name, labels: { tier } }, spec: { size: name === 'c' ? 5 : 1 } });
    const names = async (options: Parameters<typeof client.list>[1]) =>
      (await client.list(widgetKind, options)).items.map((item) => item.metadata.name);
    expect(await names({ labelSelector: 'tier=back' })).toEqual(['b', 'c']);
    expect(await names({ labelSelector: { matchLabels: { tier: 'front' } } })).toEqual(['a']);
    expect(await names({ labelSelector: 'tier', fieldSelector: 'spec.size=5' })).toEqual(['c']);
    expect(await names({ namespace: 'other' })).toEqual([]);
  });

  test('passes on the actor, the face and the reason', async () => {
    const { client, storage } = setUp();
    const made = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await client.update(widgetKind, made, { reason: 'because' });
    await client.as({ name: 'controller:x' }, 'controller').update(widgetKind, made);
    await client.as({ name: 'ben' }).update(widgetKind, made);
    expect(storage.contexts).toEqual([
      { actor: { name: 'anna', groups: ['dev'] }, face: 'cli', reason: 'because' },
      { actor: { name: 'controller:x' }, face: 'controller' },
      { actor: { name: 'ben' }, face: 'cli' },
    ]);
  });

  test('a patch merges, removes with null, and is tried again after a lost race', async () => {
    const { client, storage } = setUp();
    await client.create(widgetKind, { metadata: { name: 'a', labels: { x: '1', y: '2' } }, spec: { color: 'red' } });
    storage.beforeUpdate = async () => {
      await client.patch(widgetKind, { name: 'a' }, { metadata: { labels: { other: 'writer' } } });
    };
    const patched = await client.patch(
      widgetKind,
      { name: 'a' },
      { metadata: { labels: { x: null } }, spec: { size: 7 } },
    );
    expect(patched.metadata.labels).toEqual({ y: '2', other: 'writer' });
    expect(patched.spec).toEqual({ color: 'red', size: 7 });
  });

  test('a patch for a certain version is a Conflict after a lost race, and cannot rename', async () => {
    const { client } = setUp();
    const made = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await client.patch(widgetKind, { name: 'a' }, { spec: { size: 2 } });
    const { resourceVersion } = made.metadata;
    const stale = client.patch(widgetKind, { name: 'a' }, { metadata: { resourceVersion }, spec: { size: 3 } });
    await expect(stale).rejects.toMatchObject({ code: 'Conflict' });
    const rename = client.patch(widgetKind, { name: 'a' }, { metadata: { name: 'b' } });
    await expect(rename).rejects.toThrow('a patch cannot change name or namespace');
  });

  test('the status is written by its sub-resource', async () => {
    const { client } = setUp();
    const made = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    const updated = await client.updateStatus(widgetKind, { ...made, status: { ready: true } });
    expect(updated.status).toEqual({ ready: true });
    const patched = await client
      .subResource('status')
      .patch(widgetKind, { name: 'a' }, { status: { note: 'n' }, spec: { size: 9 } });
    expect(patched).toMatchObject({ status: { ready: true, note: 'n' }, spec: { size: 1 } });
    const unknown = client.subResource('approval').update(widgetKind, made);
    await expect(unknown).rejects.toMatchObject({ code: 'Unsupported' });
  });

  test('deletes with preconditions and watches', async () => {
    const { client } = setUp();
    const { resourceVersion } = await client.list(widgetKind);
    const made: Stored<KubernetesObject> = await client.create(widgetKind, { metadata: { name: 'a' }, spec: {} });
    await expect(client.delete(widgetKind, { name: 'a' }, { uid: 'other' })).rejects.toMatchObject({
      code: 'Conflict',
    });
    await client.delete(widgetKind, { name: 'a' }, { uid: made.metadata.uid });
    const end = new AbortController();
    const seen: string[] = [];
    for await (const event of client.watch(widgetKind, { resourceVersion, signal: end.signal })) {
      seen.push(event.type);
      if (event.type === 'DELETED') end.abort();
    }
    expect(seen).toEqual(['ADDED', 'DELETED']);
  });
});
