import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { widgetKind } from '../../resource/schema/testing.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { NO_LOAD } from '../metrics/request-metrics.ts';
import { createWidget, send, startTestServer, type TestServer, WIDGETS, widgetBody } from '../testing.ts';

let api: TestServer;

afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

/** A storage whose reads wait until they are released or aborted. */
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

  unblock(): void {
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
  test('beyond the limit are rejected with 429; writes and controllers have slots of their own', async () => {
    const storage = await startSlow({
      inFlight: { reading: 2, mutating: 1, priority: 1, maxShareOfUser: 1, maxWaiting: 0 },
    });
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
    storage.unblock();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    expect(api.server.load).toEqual(NO_LOAD);
  });

  test('a request that takes too long gets a Timeout, and its storage call is aborted', async () => {
    const storage = await startSlow({ requestTimeoutMs: 50 });
    const response = await api.fetch(WIDGETS);
    expect(await response.json()).toMatchObject({ code: 504, reason: 'Timeout' });
    expect(storage.contexts[0]?.signal?.aborted).toBe(true);
    // What still works keeps its place.
    expect(api.server.load.reading).toBe(1);
    storage.unblock();
    await expect.poll(() => api.server.load.reading).toBe(0);
  });

  test('the storage gets an abort when a client leaves', async () => {
    const storage = await startSlow({});
    const leave = new AbortController();
    const left = api.fetch(WIDGETS, { signal: leave.signal }).catch(() => 'left');
    await expect.poll(() => storage.contexts.length).toBe(1);
    leave.abort();
    expect(await left).toBe('left');
    await expect.poll(() => storage.contexts[0]?.signal?.aborted).toBe(true);
    storage.unblock();
  });
});

describe('stopping', () => {
  test('requests in progress end, new connections are refused', async () => {
    const storage = await startSlow({});
    const waiting = api.fetch(WIDGETS);
    await expect.poll(() => storage.contexts.length).toBe(1);
    const stopped = api.listener.stop(5000);
    await expect(send(api, 'POST', WIDGETS, widgetBody('a'))).rejects.toThrow();
    storage.unblock();
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
    storage.unblock();
  });
});

describe('bodies', () => {
  const NO_RIGHTS = { authorizer: { authorize: async () => ({ allowed: true, reason: '' }) } };

  /** A connection of a user that sends what the test writes. */
  async function peer(user: string, path: string, length: number, start: string) {
    const socket = connect(api.listener.port, '127.0.0.1');
    socket.setEncoding('latin1').on('error', () => undefined);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const head = ['Host: x', `Authorization: Bearer ${user}`, 'Content-Type: application/merge-patch+json'];
    socket.write(`PATCH ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\nContent-Length: ${length}\r\n\r\n${start}`);
    const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(text)));
    return { socket, closed };
  }

  test('that arrive slowly take no place, so that others write meanwhile', async () => {
    const clock = new ManualClock();
    api = await startTestServer({
      ...NO_RIGHTS,
      clock,
      limits: { inFlight: { mutating: 2, maxShareOfUser: 1, maxWaiting: 0 }, bodyTimeoutMs: 300, discardTimeoutMs: 10 },
    });
    await createWidget(api, 'a');
    const slow = await Promise.all(
      Array.from({ length: 205 }, () => peer('mallory', `${WIDGETS}/a`, 1000, '{"spec":')),
    );
    await expect.poll(() => api.server.load.bodyBytes).toBe(205 * '{"spec":'.length);
    expect(api.server.load.mutating).toBe(0);
    await createWidget(api, 'b');
    clock.advance(300);
    // Each has its answer once its time is up, and nothing of it is kept.
    for (const text of await Promise.all(slow.map(({ closed }) => closed))) {
      expect(text).toContain('HTTP/1.1 504 ');
      expect(text).toContain('the body of the request did not arrive within 300 ms');
    }
    expect(api.server.load).toEqual(NO_LOAD);
  });

  test('of one user have a bound together, in number and in bytes; others have their own', async () => {
    const openRequests = { maxRequestsOfUser: 2, maxBytesOfUser: 100 };
    api = await startTestServer({ ...NO_RIGHTS, limits: { openRequests, discardTimeoutMs: 10 } });
    await createWidget(api, 'a');
    const slow = [await peer('mallory', `${WIDGETS}/a`, 1000, ''), await peer('mallory', `${WIDGETS}/a`, 1000, '')];
    await expect.poll(async () => (await api.fetch(WIDGETS, {}, 'mallory')).status).toBe(429);
    expect((await api.fetch(WIDGETS, {}, 'anna')).status).toBe(200);
    slow[0]?.socket.write('x'.repeat(60));
    await expect.poll(() => api.server.load.bodyBytes).toBe(60);
    slow[1]?.socket.write('x'.repeat(60));
    const answer = (await slow[1]?.closed) ?? '';
    expect(answer).toContain('HTTP/1.1 429 ');
    expect(answer).toContain('Retry-After: 1');
    slow[0]?.socket.destroy();
    await expect.poll(() => api.server.load.bodyBytes).toBe(0);
  });

  test('of those who may not write are not read', async () => {
    api = await startTestServer();
    const { closed, socket } = await peer('mallory', `${WIDGETS}/a`, 1000, '{"spec":');
    await once(socket, 'data');
    expect(api.server.load.bodyBytes).toBe(0);
    socket.end();
    expect(await closed).toContain('HTTP/1.1 403 ');
  });

  test.each(['Content-Length', 'chunked'])(
    'that are too large get a response, also for clients that read it only after they have sent everything: %s',
    async (form) => {
      api = await startTestServer({ limits: { maxBodyBytes: 64 * 1024 } });
      const chunk = Buffer.alloc(256 * 1024, 0x20);
      const count = 32;
      const socket = connect({ port: api.listener.port, host: '127.0.0.1' });
      const failed = new Promise((_, reject) => socket.once('error', reject));
      failed.catch(() => undefined);
      const length = form === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${count * chunk.length}`;
      const head = ['Host: x', 'Authorization: Bearer admin', 'Content-Type: application/json', length];
      socket.write(`POST ${WIDGETS} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
      const [before, after] = form === 'chunked' ? [`${chunk.length.toString(16)}\r\n`, '\r\n'] : ['', ''];
      for (let index = 0; index < count; index += 1) {
        const part = Buffer.concat([Buffer.from(before), chunk, Buffer.from(after)]);
        await Promise.race([new Promise((resolve) => socket.write(part, resolve)), failed]);
      }
      if (form === 'chunked') socket.write('0\r\n\r\n');
      let answer = '';
      for await (const data of socket.setEncoding('latin1')) answer += data;
      expect(answer).toContain('HTTP/1.1 413 ');
      expect(answer).toContain('Connection: close');
      expect(JSON.parse(answer.slice(answer.indexOf('{')))).toMatchObject({
        ...{ kind: 'Status', code: 413, reason: 'RequestEntityTooLarge' },
        message: 'Request entity too large: limit is 65536',
      });
    },
  );
});

test('a user who has many requests in progress does not delay those of others', async () => {
  const allowed = { authorizer: { authorize: async () => ({ allowed: true, reason: '' }) } };
  api = await startTestServer({ ...allowed, limits: { inFlight: { reading: 4, maxShareOfUser: 0.5 } } }, []);
  const storage = new SlowStorage();
  api.registry.register(storage);
  const flood = Array.from({ length: 40 }, () => api.fetch(WIDGETS, {}, 'mallory'));
  await expect.poll(() => api.server.load.waiting.reading).toBe(38);
  const own = api.fetch(WIDGETS, {}, 'anna');
  await expect.poll(() => storage.contexts.at(-1)?.actor.name).toBe('anna');
  expect(storage.contexts).toHaveLength(3);
  const unblocking = setInterval(() => storage.unblock(), 1);
  expect((await own).status).toBe(200);
  expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([200]));
  clearInterval(unblocking);
});
