// The floor for the API: a plain HTTPS server with the same TLS and constant answers. PUT sets its responses.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { openPki, serverNames } from '../../src/server/certificates/open-pki.ts';
import { listen } from '../../src/server/listener.ts';

/** Responses by method and URL. */
const answers = new Map<string, Buffer>();
/** The line that every POST sends to all watches. */
let line = Buffer.alloc(0);
const watches = new Set<ServerResponse>();

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '' } = request;
  if (method === 'GET' && url.startsWith('/watch')) {
    watches.add(response);
    response.once('close', () => watches.delete(response));
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
    response.socket?.setNoDelay(true);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (method === 'PUT') {
    const body = Buffer.concat(chunks);
    if (url === '/line') line = body;
    else answers.set(url, body);
  }
  if (method === 'POST') for (const watch of watches) watch.write(line);
  const body = method === 'PUT' ? '' : (answers.get(url) ?? '');
  const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
  response.writeHead(200, headers).end(body);
}

const folder = process.argv[2] ?? '';
const pki = await openPki({
  folder,
  names: serverNames('127.0.0.1', 'localhost'),
  clock: systemClock,
  onNote: () => undefined,
});
const listener = await listen({
  ...{ host: '127.0.0.1', port: 0 },
  tls: { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority },
  handle: (request, response) => void handle(request, response),
  onError: (error) => console.error(error),
});
console.log(listener.url);
