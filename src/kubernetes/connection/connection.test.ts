import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { type AddressInfo, connect as connectTo, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { issueCertificate } from '../../server/certificates/issue-certificate.ts';
import type { ClusterAccess, Proof } from '../access/cluster-access.ts';
import { type Handler, sendJson, sendStatus, WireServer } from '../testing.ts';
import { Connection, type ConnectionOptions, clusterRequests } from './connection.ts';

const open: Connection[] = [];
let server: WireServer;

beforeEach(async () => {
  server = await new WireServer().start();
});

afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
  await server.stop();
});

function connect(options: ConnectionOptions & { access?: Partial<ClusterAccess> } = {}): Connection {
  const { access, limits, ...rest } = options;
  const connection = new Connection(server.access(access), {
    random: () => 0,
    limits: { retry: 1, ...limits },
    ...rest,
  });
  open.push(connection);
  return connection;
}

const get = (connection: Connection, signal?: AbortSignal) =>
  connection.call({ method: 'GET', path: '/version', ...(signal === undefined ? {} : { signal }) });

/** Responds by the handlers in turn, by the last one to all further requests. */
function inTurn(...handlers: Handler[]): void {
  server.handle = (request, response) => (handlers.length > 1 ? handlers.shift() : handlers[0])?.(request, response);
}

const fine: Handler = (_request, response) => sendJson(response, 200, {});
const reset: Handler = (_request, response) => void response.socket?.resetAndDestroy();
const resetInBody: Handler = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{', () => response.socket?.resetAndDestroy());
};
const busy =
  (status: number, retryAfter?: string): Handler =>
  (_request, response) => {
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    sendStatus(response, status, '', 'not now');
  };

test('each attempt is measured by the code of its response', async () => {
  const seen: object[] = [];
  onTestFinished(clusterRequests.subscribe((request) => seen.push(request)));
  inTurn(reset, busy(429, '0'), fine);
  await get(connect());
  const { host } = new URL(server.access().server);
  const request = { method: 'GET', host };
  expect(seen).toEqual([
    { ...request, code: '<error>' },
    { ...request, code: '429' },
    { ...request, code: '200' },
  ]);
});

describe('retries', () => {
  test('a read after a broken connection', async () => {
    inTurn(reset, resetInBody, fine);
    await expect(get(connect())).resolves.toMatchObject({ status: 200, text: '{}' });
    expect(server.received).toHaveLength(3);
    inTurn(reset);
    await expect(get(connect())).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringMatching(/closed the connection.*context "test"/),
    });
    expect(server.received).toHaveLength(7);
  });

  test('no write after a broken connection', async () => {
    for (const fault of [reset, resetInBody]) {
      server.received.length = 0;
      inTurn(fault, fine);
      const write = connect().call({ method: 'POST', path: '/x', body: '{}' });
      await expect(write).rejects.toMatchObject({
        code: 'Unavailable',
        message: expect.stringContaining('outcome of the request is unknown'),
      });
      expect(server.received).toHaveLength(1);
    }
  });

  test('every request after 429, reads after 503 with Retry-After', async () => {
    inTurn(busy(429, '0'), busy(429), fine);
    await expect(connect().call({ method: 'POST', path: '/x', body: '{}' })).resolves.toMatchObject({ status: 200 });
    expect(server.received.map(({ body }) => body)).toEqual(['{}', '{}', '{}']);
    inTurn(busy(503, '0'), fine);
    await expect(get(connect())).resolves.toMatchObject({ status: 200 });
    server.received.length = 0;
    inTurn(busy(503), fine);
    await expect(get(connect())).rejects.toMatchObject({ code: 'Unavailable', message: 'not now' });
    inTurn(busy(503, '0'), fine);
    await expect(connect().call({ method: 'PUT', path: '/x' })).rejects.toMatchObject({ code: 'Unavailable' });
    expect(server.received).toHaveLength(2);
  });

  test('also while the process has nothing else to do', async () => {
    inTurn(busy(429), fine);
    const { server: address } = server.access();
    const script = `
      import { Connection } from ${JSON.stringify(new URL('connection.ts', import.meta.url).href)};
      const credentials = { proof: async () => ({ headers: {} }), forget() {} };
      const access = { server: '${address}', source: '', user: '', namespace: '', tls: { insecure: false }, credentials };
      console.log((await new Connection(access).call({ method: 'GET', path: '/' })).text);
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('{}\n');
  });

  test('not without end, and not after a long Retry-After', async () => {
    inTurn(busy(429, '0'));
    await expect(get(connect())).rejects.toMatchObject({ code: 'TooManyRequests' });
    expect(server.received).toHaveLength(4);
    inTurn(busy(429, '3600'));
    await expect(get(connect())).rejects.toMatchObject({ code: 'TooManyRequests' });
    expect(server.received).toHaveLength(5);
  });
});

describe('limits', () => {
  test('a response that does not begin, or stalls, is a Timeout', async () => {
    const limits = { headers: 20, body: 20 };
    inTurn(() => undefined);
    await expect(get(connect({ limits }))).rejects.toMatchObject({ code: 'Timeout' });
    inTurn((_request, response) => void response.writeHead(200).write('{'));
    await expect(get(connect({ limits }))).rejects.toMatchObject({ code: 'Timeout' });
  });

  test('a response that trickles for too long is a Timeout', async () => {
    const clock = new ManualClock();
    const connection = connect({ clock, limits: { call: 5000 } });
    const began = Promise.withResolvers<void>();
    inTurn((_request, response) => {
      response.writeHead(200).write('{');
      began.resolve();
    });
    const answer = expect(get(connection)).rejects.toMatchObject({
      code: 'Timeout',
      message: expect.stringMatching(/within 5 s/),
    });
    await began.promise;
    clock.advance(5000);
    await answer;
    expect(clock.pending).toBe(0);
  });

  test('a response that is too large is refused', async () => {
    inTurn((_request, response) => void response.end('x'.repeat(1001)));
    await expect(get(connect({ limits: { responseBytes: 1000 } }))).rejects.toMatchObject({ code: 'LimitExceeded' });
  });

  test('an abort ends a call, also between two attempts', async () => {
    for (const handler of [() => undefined, busy(429, '20')]) {
      const end = new AbortController();
      const clock = new ManualClock();
      inTurn(handler);
      server.received.length = 0;
      const ended = expect(get(connect({ clock }), end.signal)).rejects.toMatchObject({
        code: 'Unavailable',
        cause: { message: 'stop' },
      });
      // After the response the connection waits for the time of the next attempt.
      await expect.poll(() => server.received.length).toBe(1);
      if (handler.length > 0) await expect.poll(() => clock.nextDelay).toBe(20_000);
      end.abort(new Error('stop'));
      await ended;
      expect(clock.pending).toBe(0);
    }
    await expect(get(connect(), AbortSignal.abort())).rejects.toMatchObject({ code: 'Unavailable' });
    expect(server.received).toHaveLength(1);
  });
});

test('warnings are passed on', async () => {
  const warnings: string[] = [];
  inTurn((_request, response) => {
    response.setHeader('warning', [
      '299 - "unknown field \\"spec.foo\\"", 299 - "second"',
      '199 - "other"',
      '299 - "third',
    ]);
    sendJson(response, 200, {});
  });
  await get(connect({ onWarning: (text) => warnings.push(text) }));
  expect(warnings).toEqual(['unknown field "spec.foo"', 'second']);
});

test('a path before the API is kept, and a redirect is an error', async () => {
  inTurn(fine);
  const { server: address } = server.access();
  await get(connect({ access: { server: `${address}/k8s/clusters/c-1` } }));
  expect(server.received[0]?.path).toBe('/k8s/clusters/c-1/version');
  inTurn((_request, response) => void response.writeHead(302, { location: 'https://elsewhere/' }).end());
  await expect(get(connect())).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringMatching(/HTTP status 302/),
  });
});

test('the error names a server that does not listen', async () => {
  const connection = connect();
  await server.stop();
  const error = (await get(connection).catch((thrown: unknown) => thrown)) as SluiceError;
  expect(error).toMatchObject({ code: 'Unavailable' });
  expect(error.message).toMatch(/^cannot connect to http:\/\/127\.0\.0\.1:\d+: no server listens there; start it/);
  await server.start();
});

describe('TLS', () => {
  const period = { notBefore: Date.now() - 3_600_000, notAfter: Date.now() + 3_600_000 };
  const authority = issueCertificate({ ...period, usage: 'authority', commonName: 'test CA' });
  const other = issueCertificate({ ...period, usage: 'authority', commonName: 'other CA' });
  const issue = async (usage: 'server' | 'client', names: string[] = []) =>
    issueCertificate({ ...period, usage, commonName: 'anna', names }, await authority);

  async function secureServer(names: string[]): Promise<{ secure: WireServer; ca: string }> {
    const { certificate: cert, key } = await issue('server', names);
    const { certificate: ca } = await authority;
    const secure = await new WireServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false }).start();
    secure.handle = ({ headers }, response) => {
      const socket = response.socket as unknown as { authorized: boolean };
      sendJson(response, 200, { authorized: socket.authorized, token: headers.authorization });
    };
    return { secure, ca };
  }

  async function answer(access: ClusterAccess): Promise<string> {
    const connection = new Connection(access);
    open.push(connection);
    return (await get(connection)).text;
  }

  test('the certificate of the server must match the kubeconfig', async () => {
    const { secure, ca } = await secureServer(['127.0.0.1']);
    try {
      const { certificate: cert, key } = await issue('client');
      expect(await answer(secure.access({ tls: { ca, insecure: false } }))).toContain('"authorized":false');
      expect(await answer(secure.access({ tls: { ca, cert, key, insecure: false } }))).toContain('"authorized":true');
      expect(await answer(secure.access({ tls: { insecure: true } }))).toContain('authorized');
      secure.received.length = 0;
      const foreign = answer(secure.access({ tls: { ca: (await other).certificate, insecure: false } }));
      await expect(foreign).rejects.toMatchObject({
        code: 'Unavailable',
        message: expect.stringMatching(/is not trusted.*"sluice up" writes one at each start/),
      });
      const unknown = answer(secure.access({ tls: { insecure: false } }));
      await expect(unknown).rejects.toMatchObject({ message: expect.stringMatching(/names no certificate-authority/) });
      const wrongName = answer(secure.access({ tls: { ca, insecure: false, serverName: 'other.example' } }));
      await expect(wrongName).rejects.toMatchObject({ message: expect.stringMatching(/is for another name/) });
      expect(secure.received).toHaveLength(0);
    } finally {
      await secure.stop();
    }
  });

  test('tls-server-name replaces the name in the address', async () => {
    const { secure, ca } = await secureServer(['api.example']);
    try {
      const tls = { ca, insecure: false, serverName: 'api.example' };
      expect(await answer(secure.access({ tls }))).toContain('authorized');
    } finally {
      await secure.stop();
    }
  });

  test('a proxy is used, and does not receive credentials for the server', async () => {
    const { secure, ca } = await secureServer(['127.0.0.1']);
    const asked: unknown[] = [];
    const proxy = createServer().on('connect', (request, socket: Socket) => {
      asked.push(request.url, request.headers['proxy-authorization'], request.headers.authorization);
      const [host, port] = String(request.url).split(':');
      const there = connectTo(Number(port), host, () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.pipe(there).pipe(socket);
      });
      for (const end of [there, socket]) end.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    const access = secure.access({ tls: { ca, insecure: false }, proxy: `http://anna:hunter2@127.0.0.1:${port}` });
    try {
      expect(await answer(access)).toContain('"token":"Bearer secret"');
      const basic = `Basic ${Buffer.from('anna:hunter2').toString('base64')}`;
      expect(asked).toEqual([secure.access().server.slice('https://'.length), basic, undefined]);
    } finally {
      await open.pop()?.close();
      await new Promise((resolve) => proxy.close(resolve));
      await secure.stop();
    }
    const error = (await answer(access).catch((thrown: unknown) => thrown)) as SluiceError;
    expect(error.message).toContain(`through the proxy 127.0.0.1:${port}`);
    expect(error.message).not.toContain('hunter2');
  });

  test('a server without TLS is recognized', async () => {
    inTurn(fine);
    const address = server.access().server.replace('http:', 'https:');
    await expect(answer(server.access({ server: address }))).rejects.toMatchObject({
      message: expect.stringMatching(/does not speak HTTPS/),
    });
  });

  test('a new client certificate of a plugin is used from the next call on', async () => {
    const { secure, ca } = await secureServer(['127.0.0.1']);
    try {
      const { certificate: cert, key } = await issue('client');
      let proof: Proof = { headers: {} };
      const credentials = { proof: async () => proof, forget: () => undefined };
      const connection = new Connection(secure.access({ tls: { ca, insecure: false }, credentials }));
      open.push(connection);
      expect((await get(connection)).text).toContain('"authorized":false');
      proof = { headers: {}, certificate: { cert, key } };
      expect((await get(connection)).text).toContain('"authorized":true');
    } finally {
      await secure.stop();
    }
  });

  test('authorities that were replaced are read again when the server is not trusted', async () => {
    const { secure, ca } = await secureServer(['127.0.0.1']);
    try {
      const old = (await other).certificate;
      let read = old;
      const credentials = {
        proof: async () => ({ headers: {}, ca: read }),
        forget: () => {
          read = ca;
        },
      };
      const connection = new Connection(secure.access({ tls: { ca: old, insecure: false }, credentials }));
      open.push(connection);
      await expect(get(connection)).rejects.toMatchObject({ code: 'Unavailable' });
      expect((await get(connection)).text).toContain('authorized');
      // An authority that is no longer trusted is not trusted by an open connection either.
      read = old;
      await expect(get(connection)).rejects.toMatchObject({ code: 'Unavailable' });
    } finally {
      await secure.stop();
    }
  });
});
