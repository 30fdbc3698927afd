import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../test/support/git/git-cli.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { reportAuthenticated } from './authentication/authenticated-requests.ts';
import { openPki, type Pki } from './certificates/open-pki.ts';
import { type Listener, listen } from './listener.ts';

const local = {
  host: '127.0.0.1',
  port: 0,
  onError: (error: unknown) => {
    throw error;
  },
};

test('connections without a request in progress do not delay the end', async () => {
  const listener = await listen({ ...local, handle: (_request, response) => response.end('ok') });
  const silent = connect(listener.port, '127.0.0.1');
  const kept = connect(listener.port, '127.0.0.1');
  kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await new Promise((resolve) => kept.once('data', resolve));
  const ended = Promise.all(
    [silent, kept].map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))),
  );
  // Far longer than the test may take.
  await listener.stop(600_000);
  await ended;
});

describe('peers who are slow or silent', () => {
  const timeouts = { handshakeMs: 100, headMs: 100, requestMs: 150, checkIntervalMs: 10 };
  let folder: ReturnType<typeof temporaryFolder>;
  let pki: Pki;
  let listener: Listener;
  beforeAll(async () => {
    folder = temporaryFolder();
    pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
  });
  afterAll(() => folder.remove());
  beforeEach(async () => {
    const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
    // The peers close their side of the connection as they like, which is nothing to complain of.
    const options = { ...local, tls, timeouts, onError: () => undefined };
    listener = await listen({
      ...options,
      handle: (request, response) => void request.resume().on('end', () => response.end('ok')),
    });
  });
  afterEach(() => listener.stop(0));

  async function open(): Promise<Socket> {
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', ca: pki.authority });
    await once(socket, 'secureConnect');
    return socket.on('error', () => undefined);
  }
  const closed = (socket: Socket) => new Promise((resolve) => socket.resume().once('close', resolve));

  async function answer(): Promise<string> {
    const socket = await open();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    await closed(socket);
    return text;
  }

  test('a connection without a TLS handshake is closed', async () => {
    const socket = connect(listener.port, '127.0.0.1').on('error', () => undefined);
    await closed(socket);
  });

  test('a TLS handshake that has not ended does not delay the end', async () => {
    const slow = await listen({
      ...{ ...local, timeouts: { handshakeMs: 3_600_000 }, onError: () => undefined, handle: () => undefined },
      tls: { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority },
    });
    const [silent, late] = [connect(slow.port, '127.0.0.1'), connect(slow.port, '127.0.0.1')];
    for (const socket of [silent, late]) {
      socket.on('error', () => undefined);
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
    }
    // Connections are accepted in their order: the others are known when this one is served.
    const last = connectTls({ port: slow.port, host: '127.0.0.1', ca: pki.authority });
    await once(last, 'secureConnect');
    const ended = slow.stop(3_600_000);
    const handshake = connectTls({ socket: late, host: '127.0.0.1', ca: pki.authority }).on('error', () => undefined);
    await Promise.all([ended, closed(handshake)]);
    last.destroy();
  });

  test.each([
    ['a head that is sent too slowly', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '],
    ['a body that is sent too slowly', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n'],
  ])('%s ends the connection, and others are served meanwhile', async (_what, begin) => {
    const slow = await open();
    slow.write(begin);
    const drops = setInterval(() => slow.writable && slow.write('a'), 10);
    onTestFinished(() => clearInterval(drops));
    await closed(slow);
    // On a loaded machine this one may be too slow as well.
    await expect.poll(answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('more connections than the listener holds', () => {
  const MAX_CONNECTIONS = 8;
  let folder: ReturnType<typeof temporaryFolder>;
  let pki: Pki;
  beforeAll(async () => {
    folder = temporaryFolder();
    pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
  });
  afterAll(() => folder.remove());

  async function start(isTls: boolean, handle: RequestListener): Promise<Listener> {
    const tls = isTls ? { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority } : undefined;
    const options = { ...local, maxConnections: MAX_CONNECTIONS, onError: () => undefined, handle };
    const listener = await listen({ ...options, ...(tls === undefined ? {} : { tls }) });
    onTestFinished(() => listener.stop(0));
    return listener;
  }

  function silent({ port }: Listener): Socket {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    return socket;
  }

  function open({ port }: Listener, isTls: boolean): Socket {
    return isTls ? connectTls({ port, host: '127.0.0.1', ca: pki.authority }) : connect(port, '127.0.0.1');
  }

  async function read(socket: Socket, head: string, until: RegExp): Promise<string> {
    socket.write(head);
    let text = '';
    const reading = (chunk: Buffer) => {
      text += chunk.toString('latin1');
    };
    socket.on('data', reading);
    await expect.poll(() => text).toMatch(until);
    socket.off('data', reading);
    return text;
  }

  describe.each([
    ['without TLS', false],
    ['with TLS', true],
  ])('%s', (_what, isTls) => {
    test('silent ones make way, also half a head, and a genuine client is served in the middle of the flood', async () => {
      const listener = await start(isTls, (_request, response) => response.end('ok'));
      const flood = Array.from({ length: 5 * MAX_CONNECTIONS }, () => silent(listener));
      for (const socket of flood) socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nX: '));
      await Promise.all(flood.map((socket) => once(socket, 'connect')));
      for (let count = 0; count < 3; count += 1) {
        const client = open(listener, isTls);
        onTestFinished(() => void client.destroy());
        const head = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
        expect(await read(client, head, /ok/)).toMatch(/^HTTP\/1\.1 200 /);
      }
      expect(flood.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(MAX_CONNECTIONS);
    });

    test('requests in progress without valid credentials make way', async () => {
      const listener = await start(isTls, (request, response) => {
        if (request.url === '/watch') response.write('begun');
        else response.end('ok');
      });
      for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
        const held = open(listener, isTls).on('error', () => undefined);
        onTestFinished(() => void held.destroy());
        await read(held, 'GET /watch HTTP/1.1\r\nHost: x\r\n\r\n', /begun/);
      }
      const client = open(listener, isTls);
      onTestFinished(() => void client.destroy());
      expect(await read(client, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', /ok/)).toMatch(/^HTTP\/1\.1 200 /);
    });

    test('idle ones of authenticated clients make way after those without a known sender, and one with a request in progress stays', async () => {
      const waiting: ServerResponse[] = [];
      const listener = await start(isTls, (request, response) => {
        reportAuthenticated(request);
        if (request.url === '/watch') response.write('begun', () => waiting.push(response));
        else response.end('ok');
      });
      const [watch, idle] = [open(listener, isTls), open(listener, isTls)];
      onTestFinished(() => void [watch, idle].map((socket) => socket.destroy()));
      await read(watch, 'GET /watch HTTP/1.1\r\nHost: x\r\n\r\n', /begun/);
      await read(idle, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', /ok/);
      const flood = Array.from({ length: 3 * MAX_CONNECTIONS }, () => silent(listener));
      await Promise.all(flood.map((socket) => once(socket, 'connect')));
      await read(idle, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', /ok/);
      // All places are taken by requests in progress but the one that is idle.
      const watches = Array.from({ length: MAX_CONNECTIONS - 2 }, () => open(listener, isTls));
      onTestFinished(() => void watches.map((socket) => socket.destroy()));
      for (const socket of watches) await read(socket, 'GET /watch HTTP/1.1\r\nHost: x\r\n\r\n', /begun/);
      const ended = once(idle.on('error', () => undefined).resume(), 'close');
      const last = open(listener, isTls);
      onTestFinished(() => void last.destroy());
      await read(last, 'GET /watch HTTP/1.1\r\nHost: x\r\n\r\n', /begun/);
      await ended;
      const refused = silent(listener);
      await once(refused.resume(), 'close');
      expect(watch.closed).toBe(false);
      expect(waiting).toHaveLength(MAX_CONNECTIONS);
      for (const response of waiting) response.end();
    });
  });
});

test('a port that is in use is reported with what to do', async () => {
  const first = await listen({ ...local, handle: () => undefined });
  const second = listen({ ...local, port: first.port, handle: () => undefined });
  await expect(second).rejects.toMatchObject({
    code: 'Unavailable',
    message: `cannot listen on 127.0.0.1:${first.port}: the port is in use; stop the process that uses it, or choose another port (0 takes a free one)`,
  });
  await first.stop();
});

test('the address is reported as a URL', async () => {
  const listener = await listen({ ...local, handle: () => undefined });
  expect(listener.url).toBe(`http://127.0.0.1:${listener.port}`);
  expect(listener.port).toBeGreaterThan(0);
  await listener.stop();
});
