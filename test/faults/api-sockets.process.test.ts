import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RunningUp } from '../support/api/running-up.ts';
import type { SeenEvent } from '../support/api/watch-stream.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const MEBIBYTE = 1024 * 1024;

let folder: string;
let up: RunningUp;
const sockets = new Set<Socket>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-sockets-'));
  up = await RunningUp.start(join(folder, 'data'));
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  expect(up.ownFailures()).toEqual([]);
  expect(await up.end()).toBe(0);
  await rm(folder, { recursive: true });
});

/** A connection without HTTP on it. */
async function open(plain = false): Promise<Socket> {
  const { url, ca } = up.api;
  const target = { host: url.hostname, port: Number(url.port) };
  const socket = plain ? connectTcp(target) : connect({ ...target, ...(ca === undefined ? {} : { ca }) });
  sockets.add(socket);
  // The reaction of the server is observed by the close event.
  socket.on('error', () => undefined);
  await once(socket, plain ? 'connect' : 'secureConnect');
  return socket;
}

function head(line: string, ...headers: string[]): string {
  const own = Object.entries(up.api.headers).map(([name, value]) => `${name}: ${value}`);
  return [`${line} HTTP/1.1`, 'Host: x', ...own, ...headers, '', ''].join('\r\n');
}

/** Waits until the server has closed the connection, also by an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** All that the server sends until it closes. */
async function rest(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  await closed(socket);
  return text;
}

async function answers(): Promise<void> {
  expect((await up.api.list(MAPS)).status).toBe(200);
  expect((await up.api.post(MAPS, { metadata: { generateName: 'answers-' } })).status).toBe(201);
}

/** Megabytes that the server holds in memory. */
async function memory(): Promise<number> {
  const { text } = await up.api.get('/metrics');
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]) / MEBIBYTE;
}

describe('slow, silent and disconnected peers', () => {
  test('do not block others', async () => {
    // Each becomes silent at another moment; the tests of the listener cover the time limits.
    const silent = await Promise.all(Array.from({ length: 50 }, () => open(true)));
    const idle = await Promise.all(Array.from({ length: 50 }, () => open()));
    const begun = await Promise.all(Array.from({ length: 50 }, () => open()));
    for (const socket of begun) socket.write(`GET ${MAPS} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
    const half = await Promise.all(Array.from({ length: 20 }, () => open()));
    for (const socket of half)
      socket.write(`${head(`POST ${MAPS}`, 'Content-Type: application/json', 'Content-Length: 1000')}{"metadata":`);
    await answers();
    for (const socket of [...silent, ...idle, ...begun, ...half]) socket.destroy();
    await answers();
  });

  test('may disconnect at any moment', async () => {
    for (let round = 0; round < 20; round += 1) {
      const [body, answer, watch] = [await open(), await open(), await open()];
      body.write(`${head(`POST ${MAPS}`, 'Content-Type: application/json', 'Content-Length: 100000')}{"metadata": {`);
      answer.write(head(`GET ${MAPS}`));
      watch.write(head(`GET ${MAPS}?watch=true`));
      // Another request in between gives the server time to start processing.
      await up.api.get('/version');
      for (const socket of [body, answer, watch]) {
        if (round % 2 === 0) socket.destroy();
        else socket.end();
      }
    }
    await answers();
  });

  test('1,000 at once all get a response', async () => {
    const lanes = Array.from({ length: 1000 }, (_, index) =>
      index % 10 === 0 ? up.api.post(MAPS, { metadata: { generateName: 'crowd-' } }) : up.api.get(`${MAPS}?limit=1`),
    );
    const statuses = new Set((await Promise.all(lanes)).map(({ status }) => status));
    // Those beyond the limit get 429.
    for (const status of statuses) expect([200, 201, 429]).toContain(status);
    expect(statuses).toContain(200);
    expect(statuses).toContain(201);
    await answers();
  });
});

describe('malformed requests', () => {
  test.each([
    ['two lengths', () => head(`POST ${MAPS}`, 'Content-Length: 2', 'Content-Length: 3')],
    ['a length and chunks', () => head(`POST ${MAPS}`, 'Content-Length: 2', 'Transfer-Encoding: chunked')],
    ['chunks of no size', () => `${head(`POST ${MAPS}`, 'Transfer-Encoding: chunked')}zz\r\n`],
    ['an unknown coding', () => head(`POST ${MAPS}`, 'Transfer-Encoding: x, chunked, y')],
    ['a header folded', () => head(`GET ${MAPS}`, 'X-A: b', ' c: d')],
    ['a header with a space', () => head(`GET ${MAPS}`, 'Content-Length : 2')],
    ['a NUL in a header', () => head(`GET ${MAPS}`, 'X-A: \0')],
    ['no host', () => `GET ${MAPS} HTTP/1.1\r\n\r\n`],
    ['a version of tomorrow', () => 'GET / HTTP/9.9\r\n\r\n'],
    ['no HTTP at all', () => '\x16\x03\x01\x02\x00hello\r\n\r\n'],
  ])('%s', async (_what, request) => {
    const socket = await open();
    socket.write(request());
    expect(await rest(socket)).toMatch(/^HTTP\/1\.1 (400|431|501|505) /);
    await answers();
  });

  test('plain HTTP on the port of TLS', async () => {
    const socket = await open(true);
    socket.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await rest(socket)).not.toContain('gitVersion');
    await answers();
  });

  test('an invalid method, and a tunnel', async () => {
    for (const line of ['TRACE /', 'CONNECT example.com:443', `PROPFIND ${MAPS}`, 'OPTIONS *']) {
      const socket = await open();
      socket.write(head(line, 'Connection: close'));
      expect(await rest(socket), line).toMatch(/^(HTTP\/1\.1 (400|401|404|405|501) |$)/);
    }
    await answers();
  });

  test('an upgrade to something else', async () => {
    const socket = await open();
    socket.write(head('GET /version', 'Connection: Upgrade, close', 'Upgrade: websocket', 'Sec-WebSocket-Key: x'));
    expect(await rest(socket)).toMatch(/^(HTTP\/1\.1 (200|400|426) |$)/);
    await answers();
  });
});

describe('watchers that do not read', () => {
  test('cost bounded memory, delay no other client, and get an error that they fell behind', async () => {
    const [watchers, events] = [20, 2600];
    const start = (await up.api.list(MAPS)).body.metadata.resourceVersion;
    const stuck = await Promise.all(Array.from({ length: watchers }, () => open()));
    for (const socket of stuck) {
      socket.pause();
      socket.write(head(`GET ${MAPS}?watch=true&resourceVersion=${start}`, 'Connection: close'));
    }
    using reader = await up.api.watch(`${MAPS}?resourceVersion=${start}`);
    const before = await memory();

    // In total it is 50 MB for each watcher; in one object, so that the state itself stays small.
    const filler = 'x'.repeat(20_000);
    const lanes = 20;
    await Promise.all(
      Array.from({ length: lanes }, async (_, lane) => {
        for (let index = 0; index < events / lanes; index += 1) {
          const body = {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: `l-${lane}` },
            data: { filler, index: `${index}` },
          };
          const { status, text } = await up.api.apply(`${MAPS}/l-${lane}`, 'writer', body);
          expect(status, text).toBeLessThan(300);
        }
      }),
    );
    // A watcher that reads gets everything.
    const last = new Map<string, string>();
    for (let seen = 0; seen < events; seen += 1) {
      const { object } = await reader.change();
      last.set(object.metadata.name, (object.data as { index: string }).index);
    }
    expect([...last.values()].every((index) => index === `${events / lanes - 1}`)).toBe(true);
    // The sockets of the system buffer a part; without a limit the server would buffer 1,000 MB for the others.
    expect((await memory()) - before).toBeLessThan(500);

    const answer = rest(stuck[0] as Socket);
    (stuck[0] as Socket).resume();
    const lines = (await answer).split(/\r?\n/).filter((line) => line.startsWith('{"type"'));
    const lastEvent = JSON.parse(lines.at(-1) ?? '{}') as SeenEvent;
    expect(lastEvent).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    for (const socket of stuck) socket.destroy();
    await answers();
  });
});
