import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { type Widget, widgetKind } from '../../resource/schema/testing.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { describeStorage } from '../../resource/storage/storage.conformance.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { createWidget, startTestServer, WIDGETS } from '../../server/testing.ts';
import { Connection } from '../connection/connection.ts';
import { HttpClient } from '../http-client.ts';
import { fixedAccess, isWatch, sendJson, sendStatus, WidgetApi, WireServer, wireWidget } from '../testing.ts';
import { ClusterStorage } from './cluster-storage.ts';

const context: RequestContext = { actor: { name: 'anna' }, face: 'controller' };
const sample = (name: string) => widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: {} });

/** The same objects behind the embedded API server; test/cluster has the tests over a kube-apiserver. */
describeStorage('ClusterStorage over the embedded API server', { finalizers: true, remote: true }, async () => {
  const server = await startTestServer({}, undefined, undefined, { maxEvents: 50 });
  const connection = new Connection(fixedAccess(server.listener.url, 'admin'));
  const storage = new ClusterStorage(widgetKind, new HttpClient({ connection, face: 'controller' }));
  // A watch from version 0 means one from any version.
  await createWidget(server, 'first');
  await server.fetch(`${WIDGETS}/first`, { method: 'DELETE' });
  return {
    storage,
    sample: (index) => sample(`widget-${index}`),
    changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
    changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
    overflow: async () => {
      for (let round = 0; round < 100; round += 1) await storage.create(context, sample(`filler-${round}`));
    },
    close: async () => {
      await connection.close();
      await server.stop();
    },
  };
});

describe('requests to the server', () => {
  let server: WireServer;
  let api: WidgetApi;
  let connection: Connection;
  let storage: ClusterStorage<Widget>;

  beforeEach(async () => {
    server = await new WireServer().start();
    api = await WidgetApi.start();
    server.handle = api.handle;
    const opened = server.client();
    connection = opened.connection;
    storage = new ClusterStorage(widgetKind, opened.client);
  });
  afterEach(async () => {
    await connection.close();
    await server.stop();
    await api.stop();
  });

  const sent = () =>
    server.received.map(
      ({ method, path, query }) => `${method} ${path.split('/').at(-1)}${query.size > 0 ? '?' : ''}${query}`,
    );

  test('are made as the user of the client, for any actor, with the reason', async () => {
    await storage.create({ ...context, reason: 'because' }, sample('a'));
    const [request] = server.received;
    expect(request?.headers).toMatchObject({ authorization: 'Bearer secret', 'sluice-reason': 'because' });
    expect(request?.headers).not.toHaveProperty('impersonate-user');
  });

  test('state a dry run, and pass warnings on to the caller', async () => {
    server.handle = (_request, response) => {
      response.setHeader('warning', '299 - "field is deprecated"');
      sendJson(response, 201, wireWidget('a', '', { metadata: { name: 'a', namespace: 'default' } }));
    };
    const warnings: string[] = [];
    const dry = { ...context, dryRun: true, warn: (text: string) => warnings.push(text) };
    expect((await storage.create(dry, sample('a'))).metadata.resourceVersion).toBe('');
    expect(sent()).toEqual(['POST widgets?dryRun=All']);
    expect(warnings).toEqual(['field is deprecated']);
  });

  test('name the manager of an applied configuration', async () => {
    const { apiVersion, kind, metadata, spec } = sample('a');
    const configuration = { apiVersion, kind, metadata, spec };
    await storage.apply(context, configuration, { manager: 'sluice test', force: true });
    expect(sent()).toEqual(['PATCH a?fieldManager=sluice+test&force=true']);
    expect(server.received[0]?.headers['content-type']).toBe('application/apply-patch+yaml');
    const call = storage.apply(context, configuration, { manager: 'sluice test', subResource: 'other' });
    await expect(call).rejects.toMatchObject({ code: 'Unsupported' });
  });

  test('fetch at most 500 items at once', async () => {
    await storage.list(context, { limit: 10_000 });
    await storage.list(context);
    expect(sent()).toEqual(['GET widgets?limit=500', 'GET widgets?limit=500']);
  });

  test('patch in one step for the client of a registry', async () => {
    await storage.create(context, sample('a'));
    const registry = new Registry();
    registry.register(storage as unknown as Storage);
    const client = new RegistryClient(registry, context.actor, 'controller');
    server.received.length = 0;
    await client.patch(widgetKind, { name: 'a' }, { spec: { size: 5 } });
    await client.subResource('status').patch(widgetKind, { name: 'a' }, { status: { note: 'n' } });
    expect(sent()).toEqual(['PATCH a', 'PATCH status']);
    const patched = await client.get(widgetKind, { name: 'a' });
    expect(patched).toMatchObject({ spec: { size: 5 }, status: { note: 'n' } });
    const rename = client.patch(widgetKind, { name: 'a' }, { metadata: { name: 'b' } });
    await expect(rename).rejects.toThrow('a patch cannot change name or namespace');
  });

  test('open a watch again after 429, when the server wants it', async () => {
    await api.create('a');
    const { resourceVersion } = await storage.list(context);
    api.faults.push({
      takes: isWatch,
      handle: (_request, response) => {
        response.setHeader('retry-after', '0');
        sendStatus(response, 429, 'TooManyRequests', 'too many requests');
      },
    });
    const { signal } = new AbortController();
    const events = storage.watch(context, { resourceVersion, signal })[Symbol.asyncIterator]();
    const next = events.next();
    await api.create('b');
    expect(await next).toMatchObject({ value: { type: 'ADDED', object: { metadata: { name: 'b' } } } });
    expect(server.received.filter(isWatch)).toHaveLength(2);
    await events.return?.();
  });

  test('check a silent watch, and show with a bookmark that it works', async () => {
    const clock = new ManualClock();
    const { connection: watched, client } = server.client({ clock });
    await api.create('a');
    const quiet = new ClusterStorage(widgetKind, client);
    const { resourceVersion } = await quiet.list(context);
    api.faults.push({ takes: isWatch, handle: (_request, response) => response.writeHead(200).flushHeaders() });
    server.received.length = 0;
    const { signal } = new AbortController();
    const events = quiet.watch(context, { resourceVersion, signal })[Symbol.asyncIterator]();
    const bookmark = events.next();
    await expect.poll(() => server.received.length).toBe(1);
    await expect.poll(() => clock.nextDelay).toBe(150_000);
    await clock.advanceAsync(150_000);
    expect(await bookmark).toEqual({ done: false, value: { type: 'BOOKMARK', resourceVersion } });
    expect(server.received.at(-1)?.query.get('limit')).toBe('1');
    const next = events.next();
    await api.create('b');
    expect(await next).toMatchObject({ value: { type: 'ADDED', object: { metadata: { name: 'b' } } } });
    await events.return?.();
    await watched.close();
  });
});
