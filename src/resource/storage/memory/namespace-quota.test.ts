import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../foundation/time/clock.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { EventLog } from '../../watch/event-log.ts';
import { ObjectDatabase } from '../sqlite/object-database.ts';
import { MemoryStorage } from './memory-storage.ts';
import { NamespaceQuota, type QuotaLimits } from './namespace-quota.ts';

const api: RequestContext = { actor: { name: 'mallory' }, face: 'api' };
const controller: RequestContext = { actor: { name: 'controller:x' }, face: 'controller' };

function widget(name: string, namespace = 'default', annotations: Record<string, string> = {}): Widget {
  return widgetKind.complete({ metadata: { name, namespace, annotations }, spec: {} });
}

function open(limits: QuotaLimits) {
  const clock = systemClock;
  const quota = new NamespaceQuota(limits);
  return { quota, storage: new MemoryStorage(widgetKind, { clock, log: new EventLog({ clock }), quota }) };
}

describe('a full namespace', () => {
  test('refuses more objects of clients, in the words of Kubernetes; other namespaces and controllers continue', async () => {
    const { quota, storage } = open({ objects: 2, bytes: 100_000 });
    await storage.create(api, widget('a'));
    const second = await storage.create(api, widget('b'));
    await expect(storage.create(api, widget('c'))).rejects.toMatchObject({
      code: 'Refused',
      message:
        'widgets.test.sluice.dev "c" is forbidden: exceeded quota: sluice-namespace, requested: objects=1, used: objects=2, limited: objects=2',
    });
    await expect(storage.create({ ...api, dryRun: true }, widget('c'))).rejects.toMatchObject({ code: 'Refused' });
    await storage.create(api, widget('c', 'other'));
    await storage.create(controller, widget('d'));
    await storage.update(api, { ...second, spec: { size: 7 } });
    for (const name of ['a', 'b', 'd']) await storage.delete(api, { namespace: 'default', name });
    await storage.create(api, widget('e'));
    expect(quota.usage().map(({ namespace, objects }) => [namespace, objects])).toEqual([
      ['other', 1],
      ['default', 1],
    ]);
    expect(quota.exceeded).toBe(2);
  });

  test('rejects more bytes, but permits objects to shrink', async () => {
    const { quota, storage } = open({ objects: 10, bytes: 5000 });
    const large = await storage.create(api, widget('a', 'default', { a: 'x'.repeat(4000) }));
    await expect(storage.create(api, widget('b', 'default', { a: 'x'.repeat(2000) }))).rejects.toThrow(
      /exceeded quota: sluice-namespace, requested: objects.bytes=\d+, used: objects.bytes=\d+, limited: objects.bytes=5000$/,
    );
    const annotated = (length: number) => ({
      ...large,
      metadata: { ...large.metadata, annotations: { a: 'x'.repeat(length) } },
    });
    await expect(storage.update(api, annotated(6000))).rejects.toMatchObject({ code: 'Refused' });
    await storage.update(api, annotated(1000));
    await storage.create(api, widget('b', 'default', { a: 'x'.repeat(2000) }));
    for (const name of ['a', 'b']) await storage.delete(api, { namespace: 'default', name });
    expect(quota.usage()).toEqual([]);
  });
});

describe('a database', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-quota-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('counts what it has when it is opened, and not what could not be written', async () => {
    const start = () => {
      const quota = { objects: 2, bytes: 10_000 };
      const database = ObjectDatabase.open({ path: join(folder, 'objects.db'), clock: systemClock, quota });
      const log = new EventLog({ clock: systemClock, journal: database.journal });
      database.attach(log);
      const storage = database.storage(widgetKind, log);
      const close = () => {
        log.close();
        database.close();
      };
      return { database, storage, close };
    };
    const first = start();
    await first.storage.create(api, widget('a'));
    const used = first.database.quota.usage();
    expect(used).toMatchObject([{ namespace: 'default', objects: 1 }]);
    // A write that fails behind another one of its transaction takes both back.
    const failing = first.database.run((transaction) => {
      transaction.change(
        'x',
        'x',
        () => ({ before: undefined, after: undefined }),
        () => undefined,
      );
      throw new Error('disk full');
    });
    const lost = first.storage.create(api, widget('b'));
    await expect(Promise.all([failing, lost])).rejects.toThrow();
    await lost.catch(() => undefined);
    expect(first.database.quota.usage()).toEqual(used);
    first.close();
    const second = start();
    expect(second.database.quota.usage()).toEqual(used);
    await second.storage.create(api, widget('b'));
    await expect(second.storage.create(api, widget('c'))).rejects.toMatchObject({ code: 'Refused' });
    second.close();
  });
});
