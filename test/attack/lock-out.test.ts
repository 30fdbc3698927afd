import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { openPki, type Pki } from '../../src/server/certificates/open-pki.ts';
import { textResponse } from '../../src/server/http/answer.ts';
import type { PathHandler } from '../../src/server/request/path-handler.ts';
import { startTestServer, type TestServer, WIDGETS } from '../../src/server/testing.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';

const MAX_CONNECTIONS = 8;
/** Far longer than a test may take: what happens here happens because of the limits. */
const NEVER_MS = 3_600_000;

let folder: ReturnType<typeof temporaryFolder>;
let pki: Pki;
let api: TestServer;
/** Requests for the public path. */
let served: number;

beforeAll(async () => {
  folder = temporaryFolder();
  pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
});
afterAll(() => folder.remove());
beforeEach(async () => {
  const timeouts = { handshakeMs: NEVER_MS, headMs: NEVER_MS, requestMs: NEVER_MS, readMs: NEVER_MS };
  served = 0;
  const publicPath: PathHandler = async ({ path }) => {
    if (path !== '/livez') return undefined;
    served += 1;
    // The parser has seen the end of the request then, and the connection stays open after the response.
    await new Promise((resolve) => setImmediate(resolve));
    // As large as a response may be that is handed to the connection at once.
    return textResponse(200, 'text/plain', 'x'.repeat(16 * 1024));
  };
  api = await startTestServer(
    { authorizer: { authorize: async () => ({ allowed: true, reason: '' }) }, publicPaths: [publicPath] },
    undefined,
    { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority },
    {},
    { maxConnections: MAX_CONNECTIONS, timeouts },
  );
  onTestFinished(() => api.stop());
});

/** Over its own connection; resolves with the status, or with the error of the connection. */
async function genuineRequest(): Promise<string> {
  const socket = http1();
  socket.write(`GET ${WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\nConnection: close\r\n\r\n`);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return text.split('\r\n', 1)[0] ?? '';
}

function http1(): TLSSocket {
  const socket = connectTls({ port: api.listener.port, host: '127.0.0.1', ca: pki.authority });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => undefined);
}

/** A connection of HTTP/2 whose streams take no byte of a body. */
async function http2(): Promise<ClientHttp2Session> {
  const session = connectHttp2(api.listener.url, { ca: pki.authority, settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  return session;
}

async function send(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}): Promise<void> {
  const stream = session.request({ ':path': path, ...headers }).on('error', () => undefined);
  await once(stream, 'response');
}

describe('a genuine client is served, however others hold all connections', () => {
  test('over HTTP/1 without credentials, with many requests and none of their responses read', async () => {
    for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
      const socket = http1();
      await once(socket, 'secureConnect');
      socket.pause();
      const before = served;
      socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1500));
      // More than the buffers of the connection take.
      await expect.poll(() => served - before, { timeout: 5000 }).toBeGreaterThan(600);
    }
    expect(await genuineRequest()).toBe('HTTP/1.1 200 OK');
  });

  test('over HTTP/1 without credentials, with bodies that never end', async () => {
    for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
      const socket = http1();
      await once(socket, 'secureConnect');
      socket.write(`POST ${WIDGETS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{`);
    }
    expect(await genuineRequest()).toBe('HTTP/1.1 200 OK');
  });

  test.each([
    ['paths that need credentials', '/apis'],
    ['public paths', '/livez'],
  ])('over HTTP/2 without credentials, with unread responses of %s', async (_what, path) => {
    for (let count = 0; count < MAX_CONNECTIONS; count += 1) await send(await http2(), path);
    expect(await genuineRequest()).toBe('HTTP/1.1 200 OK');
  });

  test('over HTTP/2 as a user, with unread responses', async () => {
    for (let count = 0; count < MAX_CONNECTIONS; count += 1)
      await send(await http2(), WIDGETS, { authorization: 'Bearer mallory' });
    expect(await genuineRequest()).toBe('HTTP/1.1 200 OK');
  });
});
