import { expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { namespaceKind } from '../../kinds/core/namespace.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { fieldSelector } from '../../selector/field-selector.ts';
import { EventLog } from '../../watch/event-log.ts';
import { MemoryStorage } from './memory-storage.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
const clock = new ManualClock();

function namespaces() {
  const storage = new MemoryStorage(namespaceKind, { clock, log: new EventLog({ clock }) });
  const create = (name: string) => storage.create(context, namespaceKind.complete({ metadata: { name }, spec: {} }));
  return { storage, create };
}

test('a namespace stays after its deletion was requested until finalize takes its last finalizer', async () => {
  const { storage, create } = namespaces();
  await create('a');
  const marked = await storage.delete(context, { name: 'a' });
  expect(marked.metadata.deletionTimestamp).toBeDefined();
  // Clients that write the rest cannot change the finalizers of the spec.
  const kept = await storage.update(context, { ...marked, spec: { finalizers: [] } });
  expect(kept.spec.finalizers).toEqual(['kubernetes']);
  await storage.updateSubResource(context, 'finalize', { ...kept, spec: { finalizers: [] } });
  await expect(storage.get(context, { name: 'a' })).rejects.toMatchObject({ code: 'NotFound' });
});

test('the namespaces that clients count on cannot be deleted', async () => {
  const { storage, create } = namespaces();
  for (const name of ['default', 'kube-system']) {
    await create(name);
    await expect(storage.delete(context, { name })).rejects.toMatchObject({
      code: 'Refused',
      message: `namespaces "${name}" is forbidden: this namespace may not be deleted`,
    });
    expect((await storage.get(context, { name })).metadata.deletionTimestamp).toBeUndefined();
  }
});

test('a kind can be redefined: its objects are found by the new fields', async () => {
  const plain = { ...widgetKind, selectableFields: [], strategy: { ...widgetKind.strategy, hasStatus: false } };
  const storage = new MemoryStorage<Widget>(plain, { clock, log: new EventLog({ clock }) });
  const widget = widgetKind.complete({ metadata: { name: 'a', namespace: 'default' }, spec: { size: 3 } });
  await storage.create(context, widget);
  const bySize = { fieldSelector: fieldSelector('spec.size=3') };
  await expect(storage.list(context, bySize)).rejects.toMatchObject({ code: 'BadRequest' });
  expect(storage.subResources).toEqual([]);

  storage.redefine(widgetKind);
  expect((await storage.list(context, bySize)).items).toHaveLength(1);
  expect(storage.subResources).toEqual(['status']);
  expect(() => storage.redefine({ ...widgetKind, kind: 'Gadget' })).toThrow(/cannot be redefined/);
});

test('the rest of a list is not returned in another namespace, with a token that is made up', async () => {
  const storage = new MemoryStorage<Widget>(widgetKind, { clock, log: new EventLog({ clock }) });
  for (const namespace of ['mine', 'theirs'])
    for (const name of ['a', 'b'])
      await storage.create(context, widgetKind.complete({ metadata: { name, namespace }, spec: {} }));
  await storage.list(context, { limit: 1 });
  const own = await storage.list(context, { namespace: 'mine', limit: 1 });
  const [instance] = Buffer.from(own.continue ?? '', 'base64url')
    .toString('latin1')
    .split(':');
  const forged = Buffer.from(`${instance}:1:2`).toString('base64url');
  await expect(storage.list(context, { namespace: 'mine', continue: forged })).rejects.toMatchObject({
    code: 'BadRequest',
  });
  const rest = await storage.list(context, { namespace: 'mine', continue: own.continue });
  expect(rest.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual(['mine/b']);
});

test('a watch by a field that objects are no longer found by ends, rather than to stay silent', async () => {
  const storage = new MemoryStorage<Widget>(widgetKind, { clock, log: new EventLog({ clock }) });
  const { resourceVersion } = await storage.list(context);
  const { signal } = new AbortController();
  const watch = (selection: object) =>
    storage
      .watch(context, { ...selection, resourceVersion, signal })
      [Symbol.asyncIterator]()
      .next();
  const bySize = watch({ fieldSelector: fieldSelector('spec.size=3') });
  const all = watch({});
  storage.redefine({ ...widgetKind, shortNames: ['w'] });
  await storage.create(
    context,
    widgetKind.complete({ metadata: { name: 'a', namespace: 'default' }, spec: { size: 3 } }),
  );
  expect((await bySize).value).toMatchObject({ type: 'ADDED' });
  expect((await all).value).toMatchObject({ type: 'ADDED' });
  const later = watch({ fieldSelector: fieldSelector('spec.size=4') });
  storage.redefine({ ...widgetKind, selectableFields: [] });
  await expect(later).rejects.toMatchObject({ code: 'Expired' });
});

test('an update conflicts with a write of the status only where the kind permits nothing else', async () => {
  for (const updatesIgnoreStatusWrites of [false, true]) {
    const kind = { ...widgetKind, strategy: { ...widgetKind.strategy, updatesIgnoreStatusWrites } };
    const storage = new MemoryStorage<Widget>(kind, { clock, log: new EventLog({ clock }) });
    const widget = widgetKind.complete({ metadata: { name: 'a', namespace: 'default' }, spec: { size: 1 } });
    const read = await storage.create(context, widget);
    const ready = await storage.updateSubResource(context, 'status', { ...read, status: { ready: true } });
    await storage.updateSubResource(context, 'status', { ...ready, status: { ready: false } });
    const update = storage.update(context, { ...read, spec: { size: 2 } });
    if (!updatesIgnoreStatusWrites) {
      await expect(update).rejects.toMatchObject({ code: 'Conflict' });
      continue;
    }
    // The status stays as it was written last.
    expect(await update).toMatchObject({ spec: { size: 2 }, status: { ready: false } });
    await expect(storage.update(context, { ...read, spec: { size: 3 } })).rejects.toMatchObject({ code: 'Conflict' });
    const stale = storage.updateSubResource(context, 'status', { ...read, status: { ready: true } });
    await expect(stale).rejects.toMatchObject({ code: 'Conflict' });
  }
});
