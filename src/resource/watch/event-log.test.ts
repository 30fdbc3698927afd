import { expect, test } from 'vitest';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import type { RequestContext } from '../object/request-context.ts';
import { widgetKind } from '../schema/testing.ts';
import { MemoryStorage } from '../storage/memory/memory-storage.ts';
import { EventLog } from './event-log.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
const nothing = { before: undefined, after: undefined };

function setUp(window = 10) {
  const clock = new ManualClock();
  const log = new EventLog({ clock, maxEvents: window, bookmarkIntervalMs: 1000 });
  return { clock, log, storage: new MemoryStorage(widgetKind, { clock, log }) };
}

test('one version rises over all kinds, and a change that fails uses none up', () => {
  const { log } = setUp();
  log.append('a', () => nothing);
  expect(() =>
    log.append('b', () => {
      throw new Error('cannot');
    }),
  ).toThrow('cannot');
  const seen: string[] = [];
  log.append('b', (version) => {
    seen.push(version);
    return nothing;
  });
  expect(seen).toEqual(['2']);
  expect(log.version).toBe('2');
});

test('a busy kind never expires the watchers of a quiet one', async () => {
  const { log, storage } = setUp(3);
  const { resourceVersion } = await storage.list(context);
  const made = await storage.create(
    context,
    widgetKind.complete({ metadata: { name: 'a', namespace: 'default' }, spec: {} }),
  );
  for (let round = 0; round < 100; round += 1) log.append('busy', () => nothing);
  const end = new AbortController();
  for await (const event of storage.watch(context, { resourceVersion, signal: end.signal })) {
    expect(event).toEqual({ type: 'ADDED', object: made });
    end.abort();
  }
});

test('a bookmark reports how far the log is when nothing happens', async () => {
  const { clock, log, storage } = setUp();
  const end = new AbortController();
  const seen: unknown[] = [];
  const running = (async () => {
    for await (const event of storage.watch(context, { resourceVersion: '0', signal: end.signal })) seen.push(event);
  })();
  log.append('other', () => nothing);
  await clock.advanceAsync(1000);
  log.append('other', () => nothing);
  await clock.advanceAsync(1000);
  expect(seen).toEqual([
    { type: 'BOOKMARK', resourceVersion: '1' },
    { type: 'BOOKMARK', resourceVersion: '2' },
  ]);
  end.abort();
  await running;
  expect(clock.pending).toBe(0);
});

test('a version in the future, as after a lost log, is Expired', async () => {
  const { storage } = setUp();
  for (const resourceVersion of ['5', '-1', '', '1.5', '99999999999999999999999']) {
    const watch = storage.watch(context, { resourceVersion, signal: new AbortController().signal });
    await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'Expired' });
  }
});

test('closing the log ends all watches quietly', async () => {
  const { log, storage } = setUp();
  const running = (async () => {
    for await (const _event of storage.watch(context, { resourceVersion: '0', signal: new AbortController().signal }));
    return 'ended';
  })();
  await settle();
  log.close();
  expect(await running).toBe('ended');
});
