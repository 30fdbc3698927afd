import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../foundation/clock.ts';
import { EventLog } from '../../resource/event-log.ts';
import type { Kind } from '../../resource/kind.ts';
import { MemoryStorage } from '../../resource/memory-storage.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import type { Storage } from '../../resource/storage.ts';
import { widgetKind } from '../../resource/testing.ts';
import { createWidget, send, startTestServer, type TestServer, WIDGETS, widgetBody } from '../testing.ts';

let api: TestServer;

afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

/** A storage whose reads wait until they are let go, or are told to stop. */
class SlowStorage extends MemoryStorage {
  readonly contexts: RequestContext[] = [];
  #release: (() => void)[] = [];

  constructor() {
    super(widgetKind as Kind, { clock: systemClock, log: new EventLog({ clock: systemClock }) });
  }

  override async list(...[context, options]: Parameters<Storage['list']>) {
    this.contexts.push(context);
    await new Promise<void>((resolve) => this.#release.push(resolve));
    return super.list(context, options);
  }

  letGo(): void {
    for (const release of this.#release.splice(0)) release();
  }
}

async function startSlow(limits: object): Promise<SlowStorage> {
  api = await startTestServer({ limits }, []);
  const storage = new SlowStorage();
  api.registry.register(storage);
  return storage;
}

describe('requests in flight', () => {
  test('beyond the limit are told to come again; writes and controllers have places of their own', async () => {
    const storage = await startSlow({ inFlight: { reading: 2, mutating: 1, priority: 1 } });
    const waiting = [api.fetch(WIDGETS), api.fetch(WIDGETS)];
    await expect.poll(() => api.server.load.reading).toBe(2);
    const refused = await api.fetch(WIDGETS);
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toMatchObject([
      429,
      '1',
      { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } },
    ]);
    await createWidget(api, 'a');
    const controller = api.fetch(WIDGETS, {}, 'system:serviceaccount:default:controller');
    expect((await controller).status).toBe(403);
    storage.letGo();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    expect(api.server.load).toEqual({ mutating: 0, reading: 0, priority: 0, watches: 0 });
  });

  test('a request that takes too long is answered for, and asked to stop', async () => {
    const storage = await startSlow({ requestTimeout: 50 });
    const response = await api.fetch(WIDGETS);
    expect(await response.json()).toMatchObject({ code: 504, reason: 'Timeout' });
    expect(storage.contexts[0]?.signal?.aborted).toBe(true);
    // What still works keeps its place.
    expect(api.server.load.reading).toBe(1);
    storage.letGo();
    await expect.poll(() => api.server.load.reading).toBe(0);
  });

  test('a client that leaves is told to the storage', async () => {
    const storage = await startSlow({});
    const leave = new AbortController();
    const left = api.fetch(WIDGETS, { signal: leave.signal }).catch(() => 'left');
    await expect.poll(() => storage.contexts.length).toBe(1);
    leave.abort();
    expect(await left).toBe('left');
    await expect.poll(() => storage.contexts[0]?.signal?.aborted).toBe(true);
    storage.letGo();
  });
});

describe('stopping', () => {
  test('requests under way end, new ones find nobody', async () => {
    const storage = await startSlow({});
    const waiting = api.fetch(WIDGETS);
    await expect.poll(() => storage.contexts.length).toBe(1);
    const stopped = api.listener.stop(5000);
    await expect(send(api, 'POST', WIDGETS, widgetBody('a'))).rejects.toThrow();
    storage.letGo();
    expect((await waiting).status).toBe(200);
    await stopped;
  });

  test('what does not end in time is cut off', async () => {
    const storage = await startSlow({});
    const waiting = api.fetch(WIDGETS).then(
      () => 'answered',
      () => 'cut off',
    );
    await expect.poll(() => storage.contexts.length).toBe(1);
    await api.listener.stop(50);
    expect(await waiting).toBe('cut off');
    storage.letGo();
  });
});
