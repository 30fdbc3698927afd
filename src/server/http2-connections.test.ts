import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type Settings } from 'node:http2';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../../test/support/git/git-cli.ts';
import { messageOf } from '../foundation/sluice-error.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { reportAuthenticated } from './authentication/authenticated-requests.ts';
import { openPki, type Pki } from './certificates/open-pki.ts';
import { readBody } from './http/request-body.ts';
import { type Listener, type ListenOptions, listen } from './listener.ts';

const timeouts = { handshakeMs: 1000, headMs: 150, requestMs: 300, readMs: 200, checkIntervalMs: 10 };
const [END_STREAM, END_HEADERS] = [1, 4];
/** `:method: POST` in HPACK. */
const HPACK_POST = 0x83;
/** The head of a GET in HPACK: two fields of the static table, and two literal values. */
const getHead = (path: string) =>
  Buffer.concat([Buffer.from([0x82, 0x87, 0x04, path.length]), Buffer.from(path), Buffer.from([0x01, 1, 0x78])]);
/** What handlers of these paths saw. */
let seen: Record<string, unknown>[];
let folder: ReturnType<typeof temporaryFolder>;
let pki: Pki;
let listener: Listener;
const ends = new WeakMap<ClientHttp2Session, Promise<unknown>>();
const closed = (one: ClientHttp2Session) => ends.get(one);

beforeAll(async () => {
  folder = temporaryFolder();
  pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
});
afterAll(() => folder.remove());
beforeEach(async () => {
  listener = await start({ timeouts });
});
afterEach(() => listener.stop(0));

async function start(options: Partial<ListenOptions>): Promise<Listener> {
  // What is left of the test before is recorded elsewhere.
  const own: Record<string, unknown>[] = [];
  seen = own;
  const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
  return listen({
    ...{ host: '127.0.0.1', port: 0, tls, onError: () => undefined, ...options },
    handle: (request, response) => {
      const { url, method, headersDistinct, complete, httpVersion } = request;
      own.push({ url, method, headersDistinct, complete, httpVersion, tls: request.socket instanceof TLSSocket });
      response.once('close', () => own.push({ closed: url }));
      if (request.headers.authorization !== undefined) reportAuthenticated(request);
      if (url === '/cancelled')
        response
          .once('close', () => response.end())
          .writeHead(200)
          .flushHeaders();
      else if (url === '/open') response.writeHead(200).flushHeaders();
      else if (url === '/denied') response.writeHead(401).end('no');
      else if (url === '/read')
        void readBody(request, {
          limit: 100,
          clock: systemClock,
          timeoutMs: 10_000,
          hold: () => own.push({ held: url }),
        })
          .then(({ bytes }) => own.push({ whole: String(bytes) }))
          .catch((error: unknown) => own.push({ refused: messageOf(error) }));
      else if (url === '/unread') response.writeHead(413).end('too large');
      else if (url === '/large') response.end(Buffer.alloc(200_000));
      else if (url === '/huge') response.end(Buffer.alloc(8 * 1024 * 1024));
      else void request.resume().on('end', () => response.end('ok'));
    },
  });
}

interface SessionOptions {
  readonly key?: string;
  readonly cert?: string;
  readonly settings?: Settings;
}

async function session(options: SessionOptions = {}): Promise<ClientHttp2Session> {
  const one = connect(listener.url, { ca: pki.authority, ...options });
  one.on('error', () => undefined);
  ends.set(one, new Promise((resolve) => one.once('close', resolve)));
  onTestFinished(() => one.destroy());
  await once(one, 'remoteSettings');
  return one;
}

function send(one: ClientHttp2Session, path: string, { body = false, ...headers }: Record<string, unknown> = {}) {
  const stream = one.request({ ':path': path, ':method': body ? 'POST' : 'GET', ...headers }, { endStream: !body });
  return stream.on('error', () => undefined);
}

async function answer(stream: ClientHttp2Stream): Promise<{ status: number; text: string }> {
  let [text, status] = ['', 0];
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  stream.once('response', (headers) => {
    status = Number(headers[':status']);
  });
  await new Promise((resolve) => stream.once('close', resolve));
  return { status, text };
}

test('requests on one connection are handled concurrently, with the same form as in HTTP/1', async () => {
  const one = await session();
  const open = send(one, '/open');
  await once(open, 'response');
  expect(await answer(send(one, '/b', { 'x-group': ['a', 'b'] }))).toEqual({ status: 200, text: 'ok' });
  expect(seen[1]).toMatchObject({ url: '/b', method: 'GET', httpVersion: '2.0', complete: true, tls: true });
  expect(seen[1]?.headersDistinct).toMatchObject({ 'x-group': ['a', 'b'] });
  open.close();
  await expect.poll(() => seen).toContainEqual({ closed: '/open' });
});

test('a client that offers HTTP/1 only is served by it', async () => {
  const socket = connectTls({ port: listener.port, host: '127.0.0.1', ca: pki.authority });
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  let text = '';
  for await (const chunk of socket) text += chunk;
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  expect(seen[0]).toMatchObject({ httpVersion: '1.1' });
});

test('one connection has a limited number of requests in progress', async () => {
  const one = await session();
  expect(one.remoteSettings).toMatchObject({ maxConcurrentStreams: 100, maxHeaderListSize: 64 * 1024 });
});

test('a connection without a request ends, and one with a watch stays', async () => {
  const [idle, watching] = [await session(), await session()];
  const open = send(watching, '/open');
  await once(open, 'response');
  await closed(idle);
  expect(watching.closed).toBe(false);
  expect(open.closed).toBe(false);
});

test('a connection on which the head of a request never ends is closed', async () => {
  const socket = await rawConnection();
  // HEADERS of stream 1 without END_HEADERS, and no CONTINUATION.
  socket.write(frame(1, END_STREAM, 1, getHead('/open')));
  await once(socket.resume(), 'close');
  expect(seen).toEqual([]);
});

test('a body that arrives too slowly ends its request, and others are served meanwhile', async () => {
  const one = await session();
  const slow = send(one, '/slow', { body: true });
  slow.write('a');
  expect(await answer(send(one, '/b'))).toEqual({ status: 200, text: 'ok' });
  await new Promise((resolve) => slow.once('close', resolve));
  expect(slow.rstCode).toBe(constants.NGHTTP2_CANCEL);
});

test('the rest of a body that is refused is not sent', async () => {
  const one = await session();
  const refused = send(one, '/unread', { body: true });
  refused.write(Buffer.alloc(1_000_000));
  expect(await answer(refused)).toEqual({ status: 413, text: 'too large' });
  expect(refused.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  expect(await answer(send(one, '/b'))).toMatchObject({ status: 200 });
});

test('half a body whose stream ends without an error is not taken for a whole one', async () => {
  const socket = await rawConnection();
  socket.resume();
  socket.write(frame(1, END_HEADERS, 1, getHead('/read').fill(HPACK_POST, 0, 1)));
  socket.write(frame(0, 0, 1, Buffer.from('a: 1')));
  await expect.poll(() => seen).toContainEqual({ held: '/read' });
  socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, constants.NGHTTP2_NO_ERROR])));
  await expect.poll(() => seen).toContainEqual({ refused: 'the request ended before its body did' });
});

test('a response that the client does not read is aborted', async () => {
  // The window of each stream has no room for a body.
  const socket = await rawConnection(Buffer.from([0, 4, 0, 0, 0, 0]));
  socket.resume();
  socket.write(frame(1, END_HEADERS | END_STREAM, 1, getHead('/large')));
  await expect.poll(() => seen).toContainEqual({ closed: '/large' });
});

test('the end of a response whose client has cancelled it starts no timer, which would keep the process alive', async () => {
  const one = await session();
  const cancelled = send(one, '/cancelled');
  await once(cancelled, 'response');
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  cancelled.close(constants.NGHTTP2_CANCEL);
  await expect.poll(() => seen).toContainEqual({ closed: '/cancelled' });
  expect(timers.mock.calls.filter(([, delayMs]) => delayMs === timeouts.readMs)).toEqual([]);
});

test('a client without valid credentials is disconnected after the response', async () => {
  const one = await session();
  expect(await answer(send(one, '/denied'))).toEqual({ status: 401, text: 'no' });
  await closed(one);
});

test('a head that is too large is refused', async () => {
  const one = await session();
  const large = send(one, '/large-head', { 'x-large': 'a'.repeat(70_000) });
  await new Promise((resolve) => large.once('close', resolve));
  expect(seen).toEqual([]);
});

test('a client that opens and cancels requests in a row is disconnected', async () => {
  const socket = await rawConnection();
  const ended = once(socket.resume(), 'close');
  const cancel = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
  for (let stream = 1; stream < 20_000; stream += 2)
    socket.write(
      Buffer.concat([frame(1, END_HEADERS | END_STREAM, stream, getHead('/open')), frame(3, 0, stream, cancel)]),
    );
  await ended;
  expect(seen.filter(({ url }) => url === '/open').length).toBeLessThan(4000);
  expect(await answer(send(await session(), '/b'))).toMatchObject({ status: 200 });
});

test('a connection with a client certificate, which many users share, outlives the requests that they cancel', async () => {
  const { key, certificate: cert } = await pki.issueClient('front-proxy-client', [], 3_600_000);
  const one = await session({ key, cert });
  for (let round = 0; round < 20; round += 1) {
    const cancelled = Array.from({ length: 50 }, () => send(one, '/open'));
    const ended = Promise.all(cancelled.map((stream) => once(stream, 'close')));
    for (const stream of cancelled) stream.close(constants.NGHTTP2_CANCEL);
    await ended;
  }
  expect(await answer(send(one, '/b'))).toMatchObject({ status: 200 });
});

test('a connection with a client certificate serves others while some do not read large responses', async () => {
  await listener.stop(0);
  listener = await start({ timeouts: { ...timeouts, readMs: 60_000 } });
  const { key, certificate: cert } = await pki.issueClient('front-proxy-client', [], 3_600_000);
  const one = await session({ key, cert });
  const unread = Array.from({ length: 10 }, () => send(one, '/huge'));
  await Promise.all(unread.map((stream) => once(stream, 'response')));
  expect(await answer(send(one, '/b'))).toMatchObject({ status: 200 });
});

test('a full listener displaces a connection without a request, and keeps one with a watch', async () => {
  await listener.stop(0);
  listener = await start({ maxConnections: 2 });
  const [watching, idle] = [await session(), await session()];
  await once(send(watching, '/open', { authorization: 'anna' }), 'response');
  expect(await answer(send(await session(), '/b'))).toMatchObject({ status: 200 });
  await closed(idle);
  expect(watching.closed).toBe(false);
});

test.each([
  ['without credentials, with requests in progress', '/open', {}],
  ['with credentials, whose responses are not read', '/large', { authorization: 'anna' }],
])('a full listener displaces connections %s', async (_what, path, headers) => {
  await listener.stop(0);
  // Whatever happens here happens because of the limit, not of a timeout.
  const long = { handshakeMs: 3_600_000, headMs: 3_600_000, requestMs: 3_600_000, readMs: 3_600_000 };
  listener = await start({ maxConnections: 4, timeouts: long });
  for (let count = 0; count < 4; count += 1) {
    const held = await session({ settings: { initialWindowSize: 0 } });
    await once(send(held, path, headers), 'response');
  }
  expect(await answer(send(await session(), '/b', { authorization: 'berta' }))).toMatchObject({ status: 200 });
});

test('a client without valid credentials that reads no response is disconnected', async () => {
  await listener.stop(0);
  listener = await start({ timeouts: { readMs: 3_600_000 } });
  const one = await session({ settings: { initialWindowSize: 0 } });
  send(one, '/denied');
  await closed(one);
});

test('when the listener stops, idle connections end at once and requests in progress are answered', async () => {
  const [idle, busy] = [await session(), await session()];
  const body = send(busy, '/b', { body: true });
  const result = answer(body);
  await expect.poll(() => seen.length).toBe(1);
  // Far longer than the test may take.
  const stopped = listener.stop(600_000);
  await closed(idle);
  body.end('x');
  expect(await result).toEqual({ status: 200, text: 'ok' });
  await stopped;
});

/** A TLS connection after the preface of HTTP/2 and SETTINGS. */
async function rawConnection(settings: Buffer = Buffer.alloc(0)): Promise<TLSSocket> {
  const socket = connectTls({ port: listener.port, host: '127.0.0.1', ca: pki.authority, ALPNProtocols: ['h2'] });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(frame(4, 0, 0, settings));
  return socket;
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
