import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../test/support/git/git-cli.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { openPki, type Pki } from './certificates/open-pki.ts';
import { type Listener, type ListenerTls, listen } from './listener.ts';

let folder: ReturnType<typeof temporaryFolder>;
let pki: Pki;
let tls: ListenerTls;
let listener: Listener;
let client: { readonly ca: string; readonly cert: string; readonly key: string };
beforeAll(async () => {
  folder = temporaryFolder();
  pki = await openPki({ folder: folder.path, names: ['127.0.0.1'], clock: systemClock, onNote: () => undefined });
  const { key, certificate: cert } = await pki.issueClient('kube', [], 3_600_000);
  client = { ca: pki.authority, key, cert };
  tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
});
afterAll(() => folder.remove());
beforeEach(async () => {
  listener = await listen({
    ...{ host: '127.0.0.1', port: 0, onError: () => undefined, tls: { ...tls, clientCa: '' } },
    handle: ({ socket }, response) =>
      void response.writeHead(socket instanceof TLSSocket && socket.authorized ? 200 : 403).end(),
    refuseOutdated: (_request, response) => void response.writeHead(503).end(),
  });
});
afterEach(() => listener.stop(0));

/** Returns what sends a request over one connection of HTTP/1, or over another one when the server has closed it. */
function overHttp1(options: object): () => Promise<number | undefined> {
  const agent = new Agent({ ...options, keepAlive: true, maxSockets: 1, ALPNProtocols: ['http/1.1'] });
  onTestFinished(() => agent.destroy());
  return () =>
    new Promise((resolve, reject) => {
      const sent = request(listener.url, { agent }, (response) => {
        response.resume().once('end', () => setImmediate(resolve, response.statusCode));
      });
      sent.once('error', reject).end();
    });
}

function overHttp2(options: object): () => Promise<number | undefined> {
  const open = () => connectHttp2(listener.url, options).on('error', () => undefined);
  let session = open();
  onTestFinished(() => session.destroy());
  return async () => {
    if (session.closed || session.destroyed) session = open();
    const stream = session.request({ ':path': '/' });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    stream.resume();
    await once(stream, 'close');
    if (headers[':status'] === 503) await expect.poll(() => session.closed).toBe(true);
    return Number(headers[':status']);
  };
}

test.each([
  ['HTTP/1', overHttp1],
  ['HTTP/2', overHttp2],
])('a connection of %s that began before its authority was known is closed with 503', async (_name, over) => {
  const send = over(client);
  expect(await send()).toBe(403);
  listener.setTls(tls);
  expect(await send()).toBe(503);
  // On a connection of its own.
  expect(await send()).toBe(200);
  // A connection that is proven is not closed when the authorities change again.
  listener.setTls({ ...tls, clientCa: `${tls.clientCa}\n${pki.authority}` });
  expect(await send()).toBe(200);
});

test.each([
  ['HTTP/1', overHttp1],
  ['HTTP/2', overHttp2],
])('a connection of %s without a client certificate remains', async (_name, over) => {
  const send = over({ ca: pki.authority });
  expect(await send()).toBe(403);
  listener.setTls(tls);
  expect(await send()).toBe(403);
});
