import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { widgetKind } from '../../resource/schema/testing.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { NO_LOAD } from '../metrics/request-metrics.ts';
import { createWidget, MERGE_PATCH, openWatch, send, startTestServer, type TestServer, WIDGETS } from '../testing.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

let api: TestServer;

beforeEach(async () => {
  api = await startTestServer({}, undefined, undefined, { bookmarkIntervalMs: 50 });
});
afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

const change = (name: string, spec: object) => send(api, 'PATCH', `${WIDGETS}/${name}`, { spec }, MERGE_PATCH);
const remove = (name: string) => api.fetch(`${WIDGETS}/${name}`, { method: 'DELETE' });

describe('where a watch begins', () => {
  test('without a version, and with "0", a watch starts with the current state', async () => {
    await createWidget(api, 'a');
    for (const query of ['watch=true', 'watch=1&resourceVersion=0']) {
      const watch = await openWatch(api, query);
      expect(await watch.next()).toMatchObject({ type: 'ADDED', object: { kind: 'Widget', metadata: { name: 'a' } } });
      await watch.close();
    }
  });

  test('from a version, a watch returns the changes since then', async () => {
    const { metadata } = await createWidget(api, 'a');
    await change('a', { size: 2 });
    await createWidget(api, 'b');
    await remove('b');
    const watch = await openWatch(api, `watch=true&resourceVersion=${metadata.resourceVersion}`);
    expect(await watch.next()).toMatchObject({ type: 'MODIFIED', object: { spec: { size: 2 } } });
    expect(await watch.next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    expect(await watch.next()).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'b' } } });
    await change('a', { size: 3 });
    expect(await watch.next()).toMatchObject({ type: 'MODIFIED', object: { spec: { size: 3 } } });
  });

  test('initial events end with a marked bookmark', async () => {
    const { metadata } = await createWidget(api, 'a');
    const initial = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    const watch = await openWatch(api, `${initial}&allowWatchBookmarks=true`);
    expect(await watch.next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
    expect(await watch.next()).toEqual({
      type: 'BOOKMARK',
      object: {
        ...{ kind: 'Widget', apiVersion: 'test.sluice.dev/v1' },
        metadata: {
          resourceVersion: metadata.resourceVersion,
          annotations: { 'k8s.io/initial-events-end': 'true' },
          creationTimestamp: null,
        },
      },
    });
    const none = await openWatch(api, 'watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan');
    await createWidget(api, 'b');
    expect(await none.next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
  });

  test.each([
    ['sendInitialEvents=true', 422],
    ['resourceVersionMatch=NotOlderThan', 422],
    ['labelSelector=((', 400],
    ['fieldSelector=spec.parts%3D1', 400],
    ['timeoutSeconds=soon', 400],
    ['sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999', 504],
  ])('%s is refused before anything is sent', async (query, code) => {
    expect((await api.fetch(`${WIDGETS}?watch=true&${query}`)).status).toBe(code);
  });

  test('an unknown version ends in an error after which clients list again', async () => {
    const watch = await openWatch(api, 'watch=true&resourceVersion=999');
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired', status: 'Failure' },
    });
    expect(await watch.next()).toBeUndefined();
  });
});

describe('what a watch sends', () => {
  test('what enters a selection is ADDED, what leaves it DELETED', async () => {
    const watch = await openWatch(api, `watch=true&fieldSelector=spec.color%3Dred`);
    await createWidget(api, 'a', { color: 'blue' });
    await change('a', { color: 'red' });
    expect(await watch.next()).toMatchObject({ type: 'ADDED', object: { spec: { color: 'red' } } });
    await change('a', { color: 'blue' });
    expect(await watch.next()).toMatchObject({ type: 'DELETED', object: { spec: { color: 'red' } } });
  });

  test('tables have their columns once; a client can request metadata alone', async () => {
    await createWidget(api, 'a');
    const table = await openWatch(api, 'watch=true', { accept: TABLE });
    const partial = await openWatch(api, 'watch=true', { accept: PARTIAL });
    expect(await table.next()).toMatchObject({
      type: 'ADDED',
      object: { kind: 'Table', columnDefinitions: [{ name: 'Name' }, { name: 'Age' }] },
    });
    expect(await partial.next()).toMatchObject({
      type: 'ADDED',
      object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } },
    });
    await change('a', { size: 7 });
    expect(await table.next()).toMatchObject({
      type: 'MODIFIED',
      object: { columnDefinitions: [], rows: [{ cells: ['a', expect.any(String)] }] },
    });
    expect(await partial.next()).toMatchObject({ type: 'MODIFIED', object: { metadata: { generation: 2 } } });
  });

  test('the first line of a table watch has the columns, also if it is a change', async () => {
    const watch = await openWatch(api, 'watch=true', { accept: TABLE });
    await createWidget(api, 'a');
    await createWidget(api, 'b');
    expect(await watch.next()).toMatchObject({ object: { columnDefinitions: [{ name: 'Name' }, { name: 'Age' }] } });
    expect(await watch.next()).toMatchObject({ object: { columnDefinitions: [] } });
  });

  test('bookmarks are sent to clients that request them', async () => {
    const { metadata } = await createWidget(api, 'a');
    const query = `watch=true&resourceVersion=${metadata.resourceVersion}`;
    const requesting = await openWatch(api, `${query}&allowWatchBookmarks=true`);
    const plain = await openWatch(api, query);
    expect(await requesting.next()).toMatchObject({
      type: 'BOOKMARK',
      object: { kind: 'Widget', metadata: { resourceVersion: metadata.resourceVersion } },
    });
    await createWidget(api, 'b');
    expect(await plain.next()).toMatchObject({ type: 'ADDED' });
  });
});

describe('how a watch ends', () => {
  test('after the time that the client requested', async () => {
    await api.stop();
    const clock = new ManualClock();
    api = await startTestServer({ clock });
    const watch = await openWatch(api, 'watch=true&timeoutSeconds=7');
    const end = watch.next();
    clock.advance(6_999);
    expect(api.server.load.watches).toBe(1);
    clock.advance(1);
    expect(await end).toBeUndefined();
    await expect.poll(() => api.server.load.watches).toBe(0);
  });

  test('when the client leaves', async () => {
    const watch = await openWatch(api);
    expect(api.server.load.watches).toBe(1);
    await watch.close();
    await expect.poll(() => api.server.load.watches).toBe(0);
  });

  test('when the server stops: cleanly', async () => {
    const watch = await openWatch(api);
    const stopped = api.listener.stop();
    expect(await watch.next()).toBeUndefined();
    await stopped;
  });

  test('a watch takes no place of a request, but there are only so many', async () => {
    await api.stop();
    api = await startTestServer({ limits: { maxWatches: 3, maxWatchesOfUser: 2 } });
    const watches = [await openWatch(api), await openWatch(api)];
    expect(api.server.load).toEqual({ ...NO_LOAD, watches: 2 });
    const refused = await api.fetch(`${WIDGETS}?watch=true`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    await watches[0]?.close();
    await expect.poll(() => api.server.load.watches).toBe(1);
    await (await openWatch(api)).close();
  });

  test('the last places of all are for users who have few', async () => {
    await api.stop();
    const authorizer = { authorize: async () => ({ allowed: true, reason: '' }) };
    api = await startTestServer({ authorizer, limits: { maxWatches: 10, maxWatchesOfUser: 10 } });
    const open = (user: string) => api.fetch(`${WIDGETS}?watch=true&resourceVersion=0`, {}, user);
    const statuses: number[] = [];
    for (let index = 0; index < 11; index += 1) statuses.push((await open('mallory')).status);
    expect(statuses).toEqual([...Array(9).fill(200), 429, 429]);
    expect((await open('anna')).status).toBe(200);
    expect((await open('otto')).status).toBe(429);
  });

  test('the initial list of a watch is released once it is sent', async () => {
    await api.stop();
    const lists: WeakRef<object>[] = [];
    class Remembering extends MemoryStorage {
      override async list(...[context, options]: Parameters<Storage['list']>) {
        const result = await super.list(context, options);
        lists.push(new WeakRef(result.items), new WeakRef(result));
        return result;
      }
    }
    api = await startTestServer({}, []);
    api.registry.register(new Remembering(widgetKind as Kind, { clock: systemClock, log: api.log }));
    await createWidget(api, 'a');
    const watch = await openWatch(api);
    expect(await watch.next()).toMatchObject({ type: 'ADDED' });
    await change('a', { size: 2 });
    expect(await watch.next()).toMatchObject({ type: 'MODIFIED' });
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    await expect
      .poll(() => {
        collectGarbage();
        return lists.map((list) => list.deref());
      })
      .toEqual([undefined, undefined]);
    await watch.close();
  });

  test('a client that reads nothing costs the others nothing, and gets Expired if it falls too far behind', async () => {
    await api.stop();
    api = await startTestServer({}, undefined, undefined, { maxBufferedEvents: 20 });
    const { metadata } = await createWidget(api, 'a');
    const stuck = connect(api.listener.port, '127.0.0.1');
    const path = `${WIDGETS}?watch=true&resourceVersion=${metadata.resourceVersion}`;
    stuck.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n`);
    await expect.poll(() => api.server.load.watches).toBe(1);
    stuck.pause();
    const reading = await openWatch(api, `watch=true&resourceVersion=${metadata.resourceVersion}`);
    const filler = 'x'.repeat(100_000);
    for (let round = 1; round <= 120; round += 1) {
      await send(
        api,
        'PATCH',
        `${WIDGETS}/a`,
        { metadata: { annotations: { filler: `${round}${filler}` } } },
        MERGE_PATCH,
      );
      expect((await reading.next())?.type).toBe('MODIFIED');
    }
    let last = '';
    stuck.setEncoding('latin1');
    const ended = new Promise<void>((resolve) => stuck.once('close', resolve));
    stuck.on('data', (text: string) => {
      last = (last + text).slice(-1000);
      if (last.endsWith('0\r\n\r\n')) stuck.end();
    });
    stuck.resume();
    await ended;
    expect(last).toContain('{"type":"ERROR","object":{"kind":"Status"');
    expect(last).toContain('"code":410');
  });

  test('hundreds of watchers get the same change', async () => {
    const watches = await Promise.all(Array.from({ length: 300 }, () => openWatch(api)));
    await createWidget(api, 'a');
    const lines = await Promise.all(watches.map((watch) => watch.next()));
    expect(new Set(lines.map((line) => JSON.stringify(line))).size).toBe(1);
    expect(lines[0]).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
    await Promise.all(watches.map((watch) => watch.close()));
  });
});
