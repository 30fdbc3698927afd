import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { type Answer, sendAnswer } from './answer.ts';

const LARGE = 64 * 1024 * 1024;

test.each<[string, () => Answer['body']]>([
  ['whole', () => 'x'.repeat(LARGE)],
  ['in parts', () => Array.from({ length: 256 }, () => 'x'.repeat(LARGE / 256))],
])('a client that takes nothing of a body %s is cut off, and what it was to get is let go', async (_name, body) => {
  const server = createServer((request, response) => {
    void sendAnswer(request, response, { status: 200, contentType: 'text/plain', body: body() }, { stuckAfter: 100 });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closed = new Promise((resolve) => {
    server.on('connection', (socket) => socket.once('close', () => resolve('closed')));
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await closed).toBe('closed');
  client.destroy();
  server.close();
});
