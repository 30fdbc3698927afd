import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Informer } from '../controller/informer.ts';
import { type Clock, systemClock } from '../foundation/time/clock.ts';
import { keyOf, keyText } from '../resource/object/object.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import type { Connection } from './connection/connection.ts';
import type { HttpClient } from './http-client.ts';
import { type Handler, isList, isWatch, sendStatus, WidgetApi, WireServer } from './testing.ts';

let server: WireServer;
let api: WidgetApi;
let connection: Connection;
let client: HttpClient;
let informer: Informer<Widget>;
/** A clock with which the backoff of the informer takes milliseconds. */
const fastClock: Clock = {
  ...systemClock,
  schedule: (delay, action) => systemClock.schedule(delay / 50, action),
};
/** Number of its lists and watches that failed. */
let failures: number;
/** The state according to the events of the informer. */
let held: Map<string, string>;

beforeEach(async () => {
  server = await new WireServer().start();
  api = await WidgetApi.start();
  server.handle = api.handle;
  ({ client, connection } = server.client({ silenceLimit: 100 }));
  failures = 0;
  const onError = () => {
    failures += 1;
  };
  informer = new Informer<Widget>({ client, kind: widgetKind, clock: fastClock, onError });
  held = new Map();
  informer.addHandler((event) => {
    const key = keyText(keyOf(event.object));
    if (event.type === 'delete') held.delete(key);
    else held.set(key, event.object.metadata.resourceVersion);
  });
});

afterEach(async () => {
  await informer.stop();
  await connection.close();
  await server.stop();
  await api.stop();
});

const names = () => [...held.keys()].map((key) => key.slice('default/'.length)).sort();

/** Waits until the informer has exactly these widgets. */
async function shows(...expected: string[]): Promise<void> {
  await expect.poll(names).toEqual(expected);
  // Without a failure the test would prove nothing.
  expect(api.faults).toEqual([]);
  expect(
    informer
      .list()
      .map(({ metadata }) => metadata.name)
      .sort(),
  ).toEqual(expected);
}

async function start(): Promise<void> {
  await api.create('a');
  await api.create('b');
  informer.start();
  await informer.whenSynced();
  expect(names()).toEqual(['a', 'b']);
}

/** `handle` responds to the next request that `takes` accepts. */
const fault = (takes: WidgetApi['faults'][number]['takes'], handle: Handler) => void api.faults.push({ takes, handle });

/** Lets the watch begin, then breaks it with `strike`. */
function strikeWatch(strike: (response: Parameters<Handler>[1]) => void): { struck: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  fault(isWatch, async (request, response) => {
    await api.serve(request, response);
    strike(response);
    resolve();
  });
  return { struck: promise };
}

/** A change that the broken watch misses: one widget is created, one deleted. */
async function change(): Promise<void> {
  await api.create('c');
  await api.delete('a');
}

describe('an informer continues after', () => {
  test.each<[string, (response: Parameters<Handler>[1]) => void]>([
    ['a watch that the server ends', (response) => response.end()],
    ['a watch that is reset', (response) => response.socket?.resetAndDestroy()],
    ['a watch whose socket is destroyed', (response) => response.socket?.destroy()],
    ['a truncated event', (response) => response.end('{"type":"ADDED","object":{"metadata":{"na')],
    ['an unreadable event', (response) => response.write('{"type":"ADDED",]\n')],
    ['an event without an object', (response) => response.write('{"type":"MODIFIED","object":{}}\n')],
    [
      'an error in the stream',
      (response) => response.write('{"type":"ERROR","object":{"kind":"Status","code":500}}\n'),
    ],
    [
      'an expired version in the stream',
      (response) => response.write('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'),
    ],
  ])('%s', async (_what, strike) => {
    const { struck } = strikeWatch(strike);
    await start();
    await struck;
    await change();
    await shows('b', 'c');
  });

  test('a watch that stalls with its socket open', async () => {
    let watches = 0;
    fault(isWatch, (_request, response) => {
      watches += 1;
      response.writeHead(200).flushHeaders();
    });
    await start();
    await expect.poll(() => watches).toBe(1);
    await change();
    await shows('b', 'c');
  });

  test.each<[string, number, string]>([
    ['410', 410, 'Expired'],
    ['500', 500, 'InternalError'],
    ['503', 503, 'ServiceUnavailable'],
    ['403', 403, 'Forbidden'],
  ])('a watch with the response %s', async (_what, code, reason) => {
    fault(isWatch, (_request, response) => sendStatus(response, code, reason, 'injected'));
    await start();
    await change();
    await shows('b', 'c');
  });

  test('errors of the list after an expired watch', async () => {
    const { struck } = strikeWatch((response) => response.socket?.resetAndDestroy());
    fault(isWatch, (_request, response) => sendStatus(response, 410, 'Expired', 'injected'));
    fault(isList, (_request, response) => sendStatus(response, 500, 'InternalError', 'injected'));
    fault(isList, (_request, response) => void response.writeHead(200).end('{"items": [tru'));
    await start();
    await struck;
    await change();
    await shows('b', 'c');
  });

  test('a server that is unavailable for a while', async () => {
    await start();
    await server.stop();
    await change();
    // The watch has ended, and one attempt to restart it has failed.
    await expect.poll(() => failures).toBeGreaterThan(1);
    await server.start();
    await shows('b', 'c');
  });

  test('a server that restarts with another event log', async () => {
    await start();
    await server.stop();
    await api.stop();
    api = await WidgetApi.start();
    server.handle = api.handle;
    await api.create('z');
    await server.start();
    await shows('z');
  });
});

test('a watch that is quiet is begun again without a failure, unless the server cannot be reached then', async () => {
  await start();
  const watches = () => server.received.filter(isWatch).length;
  const quiet: Handler = (_request, response) => void response.writeHead(200).flushHeaders();
  const begun = watches();
  fault(isWatch, quiet);
  fault(isWatch, quiet);
  // The first watch had the version of the list; it ends when it is quiet, too.
  await expect.poll(watches).toBeGreaterThan(begun + 3);
  expect(failures).toBe(0);
  fault(isWatch, (_request, response) => void response.destroy());
  await expect.poll(() => failures).toBeGreaterThan(0);
  await api.create('c');
  await shows('a', 'b', 'c');
});
