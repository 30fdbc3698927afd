import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type Settings } from 'node:http2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/git/git-cli.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import type { RequestContext } from '../resource/object/request-context.ts';
import type { Kind } from '../resource/schema/kind.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import type { ApiServerOptions } from './api-server-options.ts';
import { CertificateAuthenticator } from './authentication/certificate-authenticator.ts';
import { openPki, type Pki } from './certificates/open-pki.ts';
import { NO_LOAD } from './metrics/request-metrics.ts';
import { startTestServer, type TestServer, WIDGETS, widgetBody } from './testing.ts';

const EVERYTHING = { authorizer: { authorize: async () => ({ allowed: true, reason: '' }) } };
const JSON_BODY = { 'content-type': 'application/json' };

let folder: ReturnType<typeof temporaryFolder>;
let pki: Pki;
let api: TestServer;
const sessions: ClientHttp2Session[] = [];

beforeAll(async () => {
  folder = temporaryFolder();
  pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
});
afterAll(() => folder.remove());
afterEach(async () => {
  for (const one of sessions.splice(0)) one.destroy();
  await api.stop();
  expect(api.errors).toEqual([]);
});

async function start(options: Partial<ApiServerOptions> = {}): Promise<void> {
  const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
  api = await startTestServer({ ...EVERYTHING, ...options }, undefined, tls);
}

interface SessionOptions {
  readonly key?: string;
  readonly cert?: string;
  readonly settings?: Settings;
}

async function session(options: SessionOptions = {}): Promise<ClientHttp2Session> {
  const one = connect(api.listener.url, { ca: pki.authority, ...options });
  one.on('error', () => undefined);
  sessions.push(one);
  await once(one, 'connect');
  return one;
}

interface SendOptions {
  readonly user?: string;
  readonly headers?: Record<string, string>;
  /** Whether a body follows. */
  readonly open?: boolean;
}

function send(one: ClientHttp2Session, method: string, path: string, options: SendOptions = {}): ClientHttp2Stream {
  const { user = 'admin', headers = {}, open = false } = options;
  const head = { ':method': method, ':path': path, ...(user === '' ? {} : { authorization: `Bearer ${user}` }) };
  return one.request({ ...head, ...headers }, { endStream: !open }).on('error', () => undefined);
}

const post = (one: ClientHttp2Session, headers: Record<string, string> = JSON_BODY, user = 'admin') =>
  send(one, 'POST', WIDGETS, { headers, open: true, user });

async function answer(stream: ClientHttp2Stream): Promise<{ status: number; text: string }> {
  let [text, status] = ['', 0];
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  stream.once('response', (headers) => {
    status = Number(headers[':status']);
  });
  await new Promise((resolve) => stream.once('end', resolve).once('close', resolve));
  return { status, text };
}

test('objects are written and read, and a watch on the same connection gets the change', async () => {
  await start();
  const one = await session();
  const watch = send(one, 'GET', `${WIDGETS}?watch=true`).setEncoding('utf8');
  await once(watch, 'response');
  const line = once(watch, 'data');
  const write = post(one);
  write.end(JSON.stringify(widgetBody('a')));
  expect((await answer(write)).status).toBe(201);
  expect(JSON.parse(String((await line)[0]))).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
  const { status, text } = await answer(send(one, 'GET', `${WIDGETS}/a`));
  expect([status, JSON.parse(text).metadata.name]).toEqual([200, 'a']);
  expect(api.server.load.watches).toBe(1);
  watch.close(constants.NGHTTP2_CANCEL);
  await expect.poll(() => api.server.load).toEqual(NO_LOAD);
});

test('a watch whose client takes no byte ends after a minute, also if its frames fit into the buffers', async () => {
  const clock = new ManualClock();
  await start({ clock });
  const one = await session();
  const write = post(one);
  write.end(JSON.stringify(widgetBody('a')));
  expect((await answer(write)).status).toBe(201);
  const stuck = await session({ settings: { initialWindowSize: 0 } });
  // The watch itself would last a day.
  await once(send(stuck, 'GET', `${WIDGETS}?watch=true&timeoutSeconds=86400`), 'response');
  await expect
    .poll(() => {
      clock.advance(60_000);
      return api.server.load.watches;
    })
    .toBe(0);
});

test('a client certificate names the user of each request', async () => {
  const authenticator = new CertificateAuthenticator(systemClock);
  await start({ authenticator });
  const anna = await pki.issueClient('anna', [], 3_600_000);
  const one = await session({ key: anna.key, cert: anna.certificate });
  expect((await answer(send(one, 'GET', WIDGETS, { user: '' }))).status).toBe(200);
  expect((await answer(send(await session(), 'GET', WIDGETS, { user: '' }))).status).toBe(401);
});

test('a repeated header cannot name another user than the authorised one', async () => {
  await start();
  const one = await session();
  const headers = { 'impersonate-user': ['anna', 'berta'] } as unknown as Record<string, string>;
  const { status, text } = await answer(send(one, 'GET', WIDGETS, { headers }));
  expect([status, text]).toEqual([400, expect.stringContaining('at most one header impersonate-user')]);
});

test('the storage gets an abort when a client cancels its request or disconnects, and other requests of the connection continue', async () => {
  const contexts: RequestContext[] = [];
  const release = Promise.withResolvers<void>();
  class Slow extends MemoryStorage {
    override async list(...[context, options]: Parameters<MemoryStorage['list']>) {
      contexts.push(context);
      await release.promise;
      return super.list(context, options);
    }
  }
  const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
  api = await startTestServer(EVERYTHING, [], tls);
  api.registry.register(
    new Slow(widgetKind as Kind, { clock: systemClock, log: new EventLog({ clock: systemClock }) }),
  );
  const [one, lost] = [await session(), await session()];
  const [left, stays] = [send(one, 'GET', WIDGETS), send(one, 'GET', WIDGETS)];
  const result = answer(stays);
  send(lost, 'GET', WIDGETS);
  await expect.poll(() => contexts.length).toBe(3);
  left.close(constants.NGHTTP2_CANCEL);
  lost.destroy();
  await expect.poll(() => contexts.map(({ signal }) => signal?.aborted).sort()).toEqual([false, true, true]);
  release.resolve();
  expect((await result).status).toBe(200);
});

describe('bodies', () => {
  test.each([
    ['is cancelled', constants.NGHTTP2_CANCEL],
    ['is ended without an error', constants.NGHTTP2_NO_ERROR],
  ])('a body whose stream %s is not taken for a whole one', async (_how, code) => {
    await start();
    const one = await session();
    const yaml = post(one, { 'content-type': 'application/yaml' });
    const text = 'apiVersion: test.sluice.dev/v1\nkind: Widget\nmetadata:\n  name: a\n';
    yaml.write(text);
    await expect.poll(() => api.server.load.bodyBytes).toBe(text.length);
    yaml.close(code);
    await expect.poll(() => api.server.load).toEqual(NO_LOAD);
    expect((await answer(send(one, 'GET', `${WIDGETS}/a`))).status).toBe(404);
  });

  test('that arrive slowly take no place, and end in time', async () => {
    const clock = new ManualClock();
    await start({ clock, limits: { inFlight: { mutating: 2, maxShareOfUser: 1, maxWaiting: 0 }, bodyTimeoutMs: 300 } });
    const one = await session();
    const slow = Array.from({ length: 50 }, () => post(one, JSON_BODY, 'mallory'));
    const results = slow.map(answer);
    for (const stream of slow) stream.write('{"spec":');
    await expect.poll(() => api.server.load.bodyBytes).toBe(50 * '{"spec":'.length);
    expect(api.server.load.mutating).toBe(0);
    const write = post(one);
    write.end(JSON.stringify(widgetBody('b')));
    expect((await answer(write)).status).toBe(201);
    clock.advance(300);
    for (const { status } of await Promise.all(results)) expect(status).toBe(504);
    await expect.poll(() => api.server.load).toEqual(NO_LOAD);
  });

  test('of one user have a bound together, over one connection as over many', async () => {
    await start({ limits: { openRequests: { maxRequestsOfUser: 2, maxBytesOfUser: 100 } } });
    const one = await session();
    const slow = [post(one, JSON_BODY, 'mallory'), post(one, JSON_BODY, 'mallory')];
    await expect.poll(async () => (await answer(send(one, 'GET', WIDGETS, { user: 'mallory' }))).status).toBe(429);
    expect((await answer(send(one, 'GET', WIDGETS, { user: 'anna' }))).status).toBe(200);
    slow[0]?.write('x'.repeat(60));
    await expect.poll(() => api.server.load.bodyBytes).toBe(60);
    const refused = answer(slow[1] as ClientHttp2Stream);
    slow[1]?.write('x'.repeat(60));
    expect((await refused).status).toBe(429);
    slow[0]?.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => api.server.load).toEqual(NO_LOAD);
  });

  test.each([
    ['with a length', { ...JSON_BODY, 'content-length': String(8 * 1024 * 1024) }],
    ['without one', JSON_BODY],
  ])('that are too large are refused before they end, %s', async (_what, headers) => {
    await start({ limits: { maxBodyBytes: 64 * 1024 } });
    const one = await session();
    const large = post(one, headers);
    const result = answer(large);
    large.write(Buffer.alloc(1024 * 1024, 0x20));
    expect(await result).toMatchObject({ status: 413, text: expect.stringContaining('limit is 65536') });
    expect((await answer(send(one, 'GET', WIDGETS))).status).toBe(200);
    expect(api.server.load).toEqual(NO_LOAD);
  });
});
