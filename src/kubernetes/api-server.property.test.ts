import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { Informer } from '../controller/informer.ts';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { systemClock } from '../foundation/time/clock.ts';
import type { Client } from '../resource/client/client.ts';
import { RegistryClient } from '../resource/client/registry-client.ts';
import type { KubernetesObject, Stored } from '../resource/object/object.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { Registry } from '../resource/storage/registry.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import { startTestServer, type TestServer } from '../server/testing.ts';
import { Connection } from './connection/connection.ts';
import { HttpClient } from './http-client.ts';

// Sluice's own server: this client must do over HTTP what the registry's client does in the process.

let server: TestServer;
let connection: Connection;
let client: HttpClient;

beforeEach(async () => {
  server = await startTestServer();
  connection = new Connection({
    server: server.listener.url,
    source: 'test',
    user: 'admin',
    namespace: 'default',
    tls: { insecure: false },
    credentials: { proof: async () => ({ headers: { authorization: 'Bearer admin' } }), forget: () => undefined },
  });
  client = new HttpClient({ connection, face: 'api' });
});

afterEach(async () => {
  await connection.close();
  await server.stop();
  expect(server.errors).toEqual([]);
});

function registryClient(): Client {
  const registry = new Registry();
  registry.register(new MemoryStorage(widgetKind, { clock: systemClock, log: new EventLog({ clock: systemClock }) }));
  return new RegistryClient(registry, { name: 'admin' }, 'api');
}

type Step = (client: Client, read: Map<string, Stored<Widget>>) => Promise<unknown>;

const name = fc.constantFrom('a', 'b', 'Not Valid');
const size = fc.integer({ min: 1, max: 3 });
/** Steps on a client; `read` has the last object read under each name, which may be stale. */
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(name, size).map(
    ([name, size]): Step =>
      (client) =>
        client.create(widgetKind, { metadata: { name, labels: { size: String(size) } }, spec: { size } }),
  ),
  name.map(
    (name): Step =>
      async (client, read) => {
        const found = await client.find(widgetKind, { name });
        if (found !== undefined) read.set(name, found);
        return found;
      },
  ),
  fc.tuple(name, size).map(
    ([name, size]): Step =>
      async (client, read) => {
        const old = read.get(name);
        return old && client.update(widgetKind, { ...old, spec: { ...old.spec, size } });
      },
  ),
  fc.tuple(name, fc.boolean()).map(
    ([name, ready]): Step =>
      async (client, read) => {
        const old = read.get(name);
        return old && client.updateStatus(widgetKind, { ...old, spec: { size: 99 }, status: { ready } });
      },
  ),
  fc.tuple(name, fc.constantFrom('red', 'pink', null)).map(
    ([name, color]): Step =>
      (client) =>
        client.patch(widgetKind, { name }, { spec: { color }, status: { note: 'ignored' } }),
  ),
  name.map(
    (name): Step =>
      async (client, read) => {
        const { resourceVersion } = read.get(name)?.metadata ?? {};
        return (
          resourceVersion && client.patch(widgetKind, { name }, { metadata: { resourceVersion }, spec: { size: 3 } })
        );
      },
  ),
  name.map(
    (name): Step =>
      (client) =>
        client.subResource('status').patch(widgetKind, { name }, { status: { note: 'n' }, spec: { size: 98 } }),
  ),
  fc.tuple(name, fc.boolean()).map(
    ([name, pinned]): Step =>
      (client, read) =>
        client.delete(widgetKind, { name }, pinned ? { uid: read.get(name)?.metadata.uid } : {}),
  ),
  fc.constantFrom('', 'size=2', 'size notin (1,3)').map(
    (labelSelector): Step =>
      async (client) =>
        (await client.list(widgetKind, { labelSelector })).items,
  ),
);

/** The result of a step, without the parts that differ from run to run. */
async function outcome(run: Promise<unknown>): Promise<unknown> {
  try {
    return normal(await run);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return error.code;
  }
}

function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (typeof value !== 'object' || value === null) return value;
  const { metadata, ...rest } = value as KubernetesObject;
  const { name, namespace, labels, generation, finalizers } = metadata;
  return { ...rest, metadata: { name, namespace, labels, generation, finalizers } };
}

test('property: behaves as the client of a registry', async () => {
  const remove = async (target: Client) => {
    for (const { metadata } of (await target.list(widgetKind)).items) await target.delete(widgetKind, metadata);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      await remove(client);
      const local = registryClient();
      const [readThere, readHere] = [new Map(), new Map()];
      for (const run of steps)
        expect(await outcome(run(client, readThere))).toEqual(await outcome(run(local, readHere)));
    }),
    { numRuns: runs(60) },
  );
});

test('lists in pages and follows changes', async () => {
  for (let index = 0; index < 1100; index += 1)
    await client.create(widgetKind, { metadata: { name: `w${index}` }, spec: {} });
  const informer = new Informer<Widget>({ client, kind: widgetKind, clock: systemClock });
  informer.start();
  await informer.whenSynced();
  expect(informer.list()).toHaveLength(1100);
  await client.patch(widgetKind, { name: 'w7' }, { spec: { color: 'red' } });
  await client.delete(widgetKind, { name: 'w8' });
  const seen = () => ({
    color: informer.get({ namespace: 'default', name: 'w7' })?.spec.color,
    objects: informer.list().length,
  });
  await expect.poll(seen).toEqual({ color: 'red', objects: 1099 });
  expect(await informer.isCurrent()).toBe(true);
  await informer.stop();
});

test('refusals, causes and unknown kinds arrive', async () => {
  await expect(client.as({ name: 'ben' }).list(widgetKind)).rejects.toMatchObject({
    code: 'Refused',
    message: expect.stringContaining('User "ben" cannot list resource "widgets"'),
  });
  const other = { ...widgetKind, plural: 'gadgets', kind: 'Gadget' };
  await expect(client.find(other, { name: 'a' })).rejects.toMatchObject({ code: 'Unsupported' });
  const approval = client.subResource('approval').patch(widgetKind, { name: 'a' }, {});
  await expect(approval).rejects.toMatchObject({ code: 'Unsupported' });
  const invalid = client.create(widgetKind, { metadata: { name: 'a' }, spec: { size: 1.5 } });
  await expect(invalid).rejects.toMatchObject({
    code: 'InvalidInput',
    details: { causes: [{ field: 'spec.size', path: ['spec', 'size'] }] },
  });
  expect(await client.raw('GET', '/apis/test.sluice.dev/v1/widgets')).toMatchObject({ status: 200 });
});
