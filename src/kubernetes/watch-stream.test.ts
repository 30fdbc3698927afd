import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { type Widget, widgetKind } from '../resource/schema/testing.ts';
import type { WatchEvent } from '../resource/storage/storage.ts';
import type { Connection } from './connection/connection.ts';
import { bookmark, eventLine, sendStatus, WireServer, wireWidget } from './testing.ts';

let server: WireServer;
const open: Connection[] = [];

beforeEach(async () => {
  server = await new WireServer().start();
});

afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
  await server.stop();
});

/** A watch of widgets that the server answers with `serve`, and its signal. */
function watch(
  serve: (response: ServerResponse) => void | Promise<void>,
  options: Parameters<WireServer['client']>[0] = {},
) {
  server.handle = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    return serve(response);
  };
  const { client, connection } = server.client(options);
  open.push(connection);
  const end = new AbortController();
  return { end, events: client.watch(widgetKind, { resourceVersion: '1', signal: end.signal }) };
}

/** The events until the watch ends, abbreviated; its error is the last item. */
async function outcome(events: AsyncIterable<WatchEvent<Widget>>): Promise<unknown[]> {
  const seen: unknown[] = [];
  try {
    for await (const event of events)
      seen.push(event.type === 'BOOKMARK' ? event.resourceVersion : `${event.type} ${event.object.metadata.name}`);
  } catch (error) {
    seen.push(error);
  }
  return seen;
}

const added = (name: string) => eventLine('ADDED', wireWidget(name));

describe('a watch', () => {
  test('requests bookmarks and a timeout of five to ten minutes', async () => {
    const { events } = watch((response) => void response.end(), { random: () => 0.5 });
    await outcome(events);
    expect(Object.fromEntries(server.received[0]?.query ?? [])).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: '1',
      timeoutSeconds: '450',
    });
    expect(server.received[0]?.path).toBe('/apis/test.sluice.dev/v1/widgets');
  });

  test('reads events however the stream is split, and ends with it', async () => {
    const text = `${added('é')}${eventLine('MODIFIED', wireWidget('漢字'))}\n${eventLine('BOOKMARK', bookmark('7'))}${eventLine('DELETED', wireWidget('🙂'))}`;
    const bytes = Buffer.from(text);
    const { events } = watch(async (response) => {
      for (let at = 0; at < bytes.length; at += 7) {
        response.write(bytes.subarray(at, at + 7));
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    });
    expect(await outcome(events)).toEqual(['ADDED é', 'MODIFIED 漢字', '7', 'DELETED 🙂']);
  });

  test('accepts the last event without a line feed, and freezes objects', async () => {
    const { events } = watch((response) => void response.end(added('a').trimEnd()));
    for await (const event of events)
      expect(event.type !== 'BOOKMARK' && Object.isFrozen(event.object.spec)).toBe(true);
    expect(server.received).toHaveLength(1);
  });

  test('sends no request before the first event is awaited, and none after an abort', async () => {
    const { events, end } = watch((response) => void response.write(added('a')));
    const iterator = events[Symbol.asyncIterator]();
    expect(server.received).toHaveLength(0);
    expect(await iterator.next()).toMatchObject({ value: { type: 'ADDED' } });
    const next = iterator.next();
    end.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    const { events: late, end: over } = watch(() => undefined);
    over.abort();
    expect(await outcome(late)).toEqual([]);
    expect(server.received).toHaveLength(1);
  });

  test('closes its connection when the reader returns', async () => {
    const closed = Promise.withResolvers<void>();
    const { events } = watch((response) => {
      response.on('close', closed.resolve);
      response.write(added('a') + added('b'));
    });
    for await (const _event of events) break;
    await closed.promise;
    expect(server.received).toHaveLength(1);
  });
});

describe('a failing watch', () => {
  const unavailable = expect.objectContaining({ code: 'Unavailable' });

  test('breaks: Unavailable after the events before', async () => {
    const cut = (response: ServerResponse) => {
      response.write(added('a'), () => response.socket?.resetAndDestroy());
    };
    expect(await outcome(watch(cut).events)).toEqual(['ADDED a', unavailable]);
  });

  test('ends in the middle of an event: Unavailable', async () => {
    const { events } = watch((response) => void response.end(added('a') + added('b').slice(0, 40)));
    expect(await outcome(events)).toEqual(['ADDED a', unavailable]);
  });

  test.each([
    ['no JSON', 'ADDED a\n'],
    ['no object', '5\n'],
    ['an unknown type', eventLine('RENAMED', wireWidget('a'))],
    ['an event without an object', eventLine('ADDED', undefined)],
    ['an object without a version', eventLine('ADDED', { metadata: { name: 'a' } })],
    ['a bookmark without a version', eventLine('BOOKMARK', { metadata: {} })],
    ['a bookmark of nothing', eventLine('BOOKMARK', null)],
  ])('sends %s: Unavailable', async (_what, text) => {
    const { events } = watch((response) => void response.end(text));
    expect(await outcome(events)).toEqual([unavailable]);
  });

  test('an ERROR event is thrown as its error', async () => {
    const status = (code: number, reason: string) => ({
      kind: 'Status',
      status: 'Failure',
      message: 'm',
      reason,
      code,
    });
    for (const [object, code] of [
      [status(410, 'Expired'), 'Expired'],
      [status(410, 'Gone'), 'Expired'],
      [status(500, 'InternalError'), 'Internal'],
      [status(429, 'TooManyRequests'), 'TooManyRequests'],
      [{}, 'Internal'],
      [null, 'Internal'],
    ] as const) {
      const { events } = watch((response) => void response.end(added('a') + eventLine('ERROR', object)));
      expect(await outcome(events)).toEqual(['ADDED a', expect.objectContaining({ code })]);
    }
  });

  test('an error response instead of a stream is thrown', async () => {
    const { events } = watch(() => undefined);
    server.handle = (_request, response) => sendStatus(response, 410, 'Expired', 'too old resource version: 1 (5)');
    expect(await outcome(events)).toEqual([expect.objectContaining({ code: 'Expired' })]);
  });

  test('gets an error response that does not end: Timeout', async () => {
    const { events } = watch(() => undefined, { silenceLimit: 20 });
    server.handle = (_request, response) => void response.writeHead(500).write('{');
    expect(await outcome(events)).toEqual([expect.objectContaining({ code: 'Timeout' })]);
  });

  test('is silent: Timeout; bytes of any kind count as life, and a slow reader is no silence', async () => {
    const clock = new ManualClock();
    let response: ServerResponse | undefined;
    const serve = (answer: ServerResponse) => {
      response = answer;
      answer.write(added('a'));
    };
    const { events } = watch(serve, { clock });
    const iterator = events[Symbol.asyncIterator]();
    await iterator.next();
    await clock.advanceAsync(200_000);
    const next = iterator.next();
    const settled = next.then(
      () => 'event',
      (error: unknown) => error,
    );
    response?.write('\n');
    // The watch waits again after the empty line.
    await expect.poll(() => clock.nextDelay).toBe(180_000);
    await clock.advanceAsync(179_000);
    expect(clock.pending).toBe(1);
    await clock.advanceAsync(1000);
    expect(await settled).toMatchObject({ code: 'Timeout', message: expect.stringContaining('nothing for 180 s') });
    expect(clock.pending).toBe(0);
  });

  test('a line without an end is refused', async () => {
    const piece = `"${'x'.repeat(1024 * 1024)}"`;
    let sent = 0;
    const { events } = watch(async (response) => {
      while (!response.destroyed && sent < 300) {
        sent += 1;
        if (response.write(piece)) continue;
        const left = new AbortController();
        const { signal } = left;
        await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
        left.abort();
      }
    });
    expect(await outcome(events)).toEqual([expect.objectContaining({ code: 'LimitExceeded' })]);
    expect(sent).toBeLessThan(300);
  });
});
