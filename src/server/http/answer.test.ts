import { once } from 'node:events';
import { Agent, createServer, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { type ApiResponse, encodedResponse, prettyResponse, sendResponse } from './answer.ts';

const LARGE = 64 * 1024 * 1024;

test.each<[string, () => ApiResponse['body']]>([
  ['whole', () => 'x'.repeat(LARGE)],
  ['in parts', () => Array.from({ length: 256 }, () => 'x'.repeat(LARGE / 256))],
])('a client that takes nothing of a body %s is cut off, and what it was to get is let go', async (_name, body) => {
  const server = createServer((request, response) => {
    void sendResponse(
      request,
      response,
      { status: 200, contentType: 'text/plain', body: body() },
      { stuckTimeoutMs: 100 },
    );
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

test('a client that sends requests and reads none of their small responses is cut off', async () => {
  const server = createServer((incoming, response) => {
    const answer = { status: 200, contentType: 'text/plain', body: 'x'.repeat(16 * 1024) };
    incoming.resume().once('end', () => void sendResponse(incoming, response, answer, { smallBodyTimeoutMs: 100 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2000));
  const [socket] = (await once(server, 'connection')) as [Socket];
  await once(socket, 'close');
  client.destroy();
  server.close();
});

test('a client that takes a body more slowly than it has to is cut off, though it always takes some', async () => {
  const server = createServer((incoming, response) => {
    const answer = { status: 200, contentType: 'text/plain', body: 'x'.repeat(LARGE) };
    void sendResponse(incoming, response, answer, { stuckTimeoutMs: 200, minBytesPerSecond: LARGE });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  let received = 0;
  client.on('data', (chunk) => {
    received += chunk.length;
    client.pause();
    setTimeout(() => client.resume(), 5);
  });
  await once(client, 'close');
  expect(received).toBeLessThan(LARGE);
  server.close();
});

test('a long response is neither converted to YAML nor indented: both would block all other requests', () => {
  const [short, long] = [1000, 300_000].map((length) => JSON.stringify({ a: 'x'.repeat(length) })) as [string, string];
  expect(encodedResponse(200, short, 'yaml').contentType).toBe('application/yaml');
  expect(encodedResponse(200, long, 'yaml')).toMatchObject({ contentType: 'application/json', body: long });
  const json = (body: ApiResponse['body']) => ({ status: 200, contentType: 'application/json', body });
  expect(prettyResponse(json(short)).body).toMatch(/^\{\n {2}"a"/);
  expect(prettyResponse(json(long)).body).toBe(long);
  const parts = ['{"a":', '1}'];
  expect(prettyResponse(json(parts)).body).toBe(parts);
});

test('the last byte of a large body leaves only after the others, so that the next request finds a socket that has drained', async () => {
  const responses: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    responses.push(response);
    const answer = { status: 200, contentType: 'text/plain', body: 'x'.repeat(LARGE / 4) };
    incoming.resume().once('end', () => void sendResponse(incoming, response, answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 2; round += 1) {
    const outgoing = request({ host: '127.0.0.1', port, agent }).end();
    const [incoming] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream];
    // The client has taken no byte of the body yet.
    expect(responses.at(-1)?.writableEnded).toBe(false);
    let length = 0;
    for await (const chunk of incoming) length += (chunk as Buffer).length;
    expect(length).toBe(LARGE / 4);
    expect(responses.at(-1)?.writableEnded).toBe(true);
  }
  agent.destroy();
  server.close();
});
