import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import type { Stored } from '../../object/object.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { type Widget, widgetKind } from '../../schema/testing.ts';
import { EventLog, type EventLogOptions } from '../../watch/event-log.ts';
import { topicOf } from '../memory/object-storage.ts';
import { ObjectDatabase, type ObjectDatabaseOptions } from './object-database.ts';

const FULL = "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT raise(ABORT, 'disk full'); END";

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
let folder: string;
let path: string;
const clock = new ManualClock();
const TOPIC = topicOf(widgetKind);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-objects-'));
  path = join(folder, 'objects.db');
});
afterEach(() => rm(folder, { recursive: true }));

function open(options: Partial<ObjectDatabaseOptions & EventLogOptions> = {}) {
  const database = ObjectDatabase.open({ path, clock, ...options });
  const log = new EventLog({ maxEvents: 10, ...options, clock, journal: database.journal });
  database.attach(log);
  const storage = database.storage(widgetKind, log);
  return { database, log, storage, create: (name: string) => storage.create(context, widget(name)) };
}

/** Another connection to the same file, as another program would have. */
function sql(text: string) {
  const other = new DatabaseSync(path);
  other.exec(text);
  other.close();
}

function sqlCount(): unknown {
  const other = new DatabaseSync(path);
  const count = other.prepare('SELECT count(*) AS n FROM events').get()?.n;
  other.close();
  return count;
}

function widget(name: string, color?: 'red' | 'green'): Widget {
  return widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: color === undefined ? {} : { color } });
}

async function seen(storage: ReturnType<typeof open>['storage'], resourceVersion: string, count: number) {
  const end = new AbortController();
  const events: string[] = [];
  if (count === 0) return events;
  for await (const event of storage.watch(context, { resourceVersion, signal: end.signal })) {
    if (event.type === 'BOOKMARK') continue;
    events.push(`${event.type} ${event.object.metadata.name}`);
    if (events.length === count) break;
  }
  return events;
}

test('objects are there after a new start as they were, and the file is for its owner only', async () => {
  const first = open();
  const made = await first.create('a');
  const changed = await first.storage.update(context, { ...made, spec: { ...made.spec, color: 'red' } });
  first.database.close();
  const second = open();
  expect(await second.storage.get(context, { namespace: 'default', name: 'a' })).toEqual(changed);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  second.database.close();
});

test('a watch continues after a new start, from a version before it', async () => {
  const first = open();
  const { resourceVersion } = await first.storage.list(context);
  const a = await first.create('a');
  await first.create('b');
  await first.storage.delete(context, { namespace: 'default', name: 'a' });
  first.database.close();
  const second = open();
  await second.create('c');
  expect(await seen(second.storage, resourceVersion, 4)).toEqual(['ADDED a', 'ADDED b', 'DELETED a', 'ADDED c']);
  expect(await seen(second.storage, a.metadata.resourceVersion, 3)).toEqual(['ADDED b', 'DELETED a', 'ADDED c']);
  second.database.close();
});

test('a watch reads from the file what memory has dropped, across pages', async () => {
  const { database, storage, create } = open({ maxEvents: 4 });
  const { resourceVersion } = await storage.list(context);
  for (let round = 0; round < 8; round += 1)
    await Promise.all(Array.from({ length: 100 }, (_, index) => create(`w-${round}-${index}`)));
  const events = await seen(storage, resourceVersion, 800);
  expect(new Set(events).size).toBe(800);
  database.close();
});

test('no version is given out twice, also if the process ends without a word', async () => {
  const first = open();
  const made = await first.create('a');
  // Not closed: as after a kill, what is reserved stays reserved.
  const second = ObjectDatabase.open({ path, clock });
  expect(second.journal.start).toBeGreaterThan(BigInt(made.metadata.resourceVersion));
  second.close();
  first.database.close();
});

test('of concurrent writes each is validated after the one before, and one that fails does not fail others', async () => {
  const { database, storage, create } = open();
  const results = await Promise.allSettled([create('a'), create('a'), create('b')]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect((await storage.list(context)).items).toHaveLength(2);
  database.close();
});

test('what cannot be made durable never happened: not in memory, not for watchers', async () => {
  const { database, log, storage, create } = open();
  const kept = await create('kept');
  const { resourceVersion } = await storage.list(context);
  sql(FULL);
  const changed = { ...kept, spec: { ...kept.spec, color: 'green' as const } };
  const failed = await Promise.allSettled([
    create('lost'),
    storage.update(context, changed),
    storage.delete(context, kept.metadata),
  ]);
  for (const result of failed) expect(result).toMatchObject({ status: 'rejected', reason: { code: 'Unavailable' } });
  expect((await storage.list(context)).items).toEqual([kept]);
  sql('DROP TRIGGER full');
  const next = await create('next');
  expect(await seen(storage, resourceVersion, 1)).toEqual(['ADDED next']);
  expect((await storage.list(context, { labelSelector: undefined })).items).toEqual([kept, next]);
  log.close();
  database.close();
});

test('the journal keeps a bounded number of events, and older watches end with Expired', async () => {
  const { database, storage, create } = open({ maxJournalEvents: 100, maxEvents: 4 });
  const { resourceVersion } = await storage.list(context);
  for (let round = 0; round < 11; round += 1)
    await Promise.all(Array.from({ length: 100 }, (_, index) => create(`w-${round}-${index}`)));
  await expect(seen(storage, resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  expect(sqlCount()).toBeLessThan(1100);
  database.close();
});

test('a dry run returns what would be and changes nothing', async () => {
  const { database, log, storage, create } = open();
  const made = await create('a');
  const dry: RequestContext = { ...context, dryRun: true };
  expect((await storage.create(dry, widget('b'))).metadata.uid).not.toBe('');
  expect((await storage.update(dry, { ...made, spec: { size: 7 } })).spec.size).toBe(7);
  expect((await storage.delete(dry, made.metadata)).metadata.name).toBe('a');
  await expect(storage.create(dry, widget('a'))).rejects.toMatchObject({ code: 'AlreadyExists' });
  expect((await storage.list(context)).items).toEqual([made]);
  expect(log.version).toBe(made.metadata.resourceVersion);
  database.close();
});

test('a copy is of one moment, and can be read beside the process that writes', async () => {
  const { database, create } = open();
  await create('a');
  const reader = open({ readOnly: true });
  expect((await reader.storage.list(context)).items).toHaveLength(1);
  const copy = join(folder, 'copy.db');
  reader.database.copyTo(copy);
  await create('b');
  reader.database.close();
  const restored = open({ path: copy });
  expect((await restored.storage.list(context)).items.map((one: Stored<Widget>) => one.metadata.name)).toEqual(['a']);
  restored.database.close();
  database.close();
});

test('a file of something else is left alone', async () => {
  const { database } = open();
  sql('PRAGMA user_version = 99');
  database.close();
  expect(() => open()).toThrow(/has the form 99/);
});

test('notes are kept with the next commit, and after a new start', async () => {
  const first = open();
  const notes = first.database.notes('revisions');
  notes.set('a', 'one');
  notes.set('b', 'two');
  notes.delete('a');
  await first.create('x');
  first.database.close();
  const second = open();
  const again = second.database.notes('revisions');
  expect([...again.entries()]).toEqual([['b', 'two']]);
  expect([...second.database.notes('others').entries()]).toEqual([]);
  second.database.close();
});

/** What happened elsewhere and is only published here, as with packages in Git. */
function publish(log: EventLog, name: string): string {
  let published = '';
  log.append(TOPIC, (version) => {
    published = version;
    const { metadata, ...content } = widget(name);
    const after = { ...content, metadata: { ...metadata, uid: name, creationTimestamp: '', resourceVersion: version } };
    return { before: undefined, after };
  });
  return published;
}

test('what watchers got is kept once it can be written, also if the next commits fail', async () => {
  const errors: unknown[] = [];
  const first = open({ onError: (error) => errors.push(error) });
  const { resourceVersion } = await first.storage.list(context);
  sql(FULL);
  publish(first.log, 'a');
  await expect(first.create('lost')).rejects.toMatchObject({ code: 'Unavailable' });
  publish(first.log, 'b');
  await setImmediate();
  publish(first.log, 'c');
  await setImmediate();
  // No caller waits for what is only published, so that its failure is reported here, once.
  expect(errors).toMatchObject([{ code: 'Unavailable' }]);
  sql('DROP TRIGGER full');
  first.database.close();
  const second = open();
  expect(await seen(second.storage, resourceVersion, 3)).toEqual(['ADDED a', 'ADDED b', 'ADDED c']);
  second.database.close();
});

test('a watch gets what memory has dropped before it was written', async () => {
  const { database, log, storage } = open({ maxEvents: 4 });
  const { resourceVersion } = await storage.list(context);
  const names = Array.from({ length: 40 }, (_, index) => `w-${index}`);
  for (const name of names) publish(log, name);
  expect(await seen(storage, resourceVersion, 40)).toEqual(names.map((name) => `ADDED ${name}`));
  database.close();
});

test('versions that were published before they could be written are not reused', async () => {
  const { database, log } = open();
  let last = '';
  for (let count = 0; count < 30_000; count += 1) last = publish(log, 'a');
  const later = ObjectDatabase.open({ path, clock });
  expect(later.journal.start).toBeGreaterThanOrEqual(BigInt(last));
  later.close();
  database.close();
});

test('versions that a failed commit reserved are not used before they are reserved again', async () => {
  const { database, log, create } = open();
  for (let count = 0; count < 5500; count += 1) log.reserve();
  sql(FULL);
  await expect(create('lost')).rejects.toMatchObject({ code: 'Unavailable' });
  sql('DROP TRIGGER full');
  for (let count = 0; count < 4700; count += 1) log.reserve();
  const made = await create('made');
  const later = ObjectDatabase.open({ path, clock });
  expect(later.journal.start).toBeGreaterThan(BigInt(made.metadata.resourceVersion));
  later.close();
  database.close();
});

test('the version of an expired kind is not reused after a restart', () => {
  const first = open();
  first.log.expire(TOPIC);
  const { version } = first.log;
  first.database.close();
  const second = open();
  expect(second.log.version).toBe(version);
  second.database.close();
});

test('a process whose lock was removed overwrites nothing of another one', async () => {
  const first = open();
  await first.create('a');
  const second = open();
  const { resourceVersion } = await second.create('b').then(({ metadata }) => metadata);
  await expect(first.create('b')).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringMatching(/another process writes .*objects\.db/),
  });
  first.database.close();
  const third = ObjectDatabase.open({ path, clock });
  expect(third.journal.start).toBeGreaterThanOrEqual(BigInt(resourceVersion));
  third.close();
  second.database.close();
});

test('few large events are as much as many small ones: in memory, for a watcher that lags behind, and in the file', async () => {
  const first = open({ maxJournalEvents: 1000, maxBytes: 64_000, maxJournalBytes: 512_000 });
  const large = widget('large');
  const text = 'x'.repeat(16_000);
  const write = (round: number) =>
    first.storage.update(context, { ...large, metadata: { ...large.metadata, annotations: { text: text + round } } });
  const { resourceVersion } = await first.storage.create(context, large).then(({ metadata }) => metadata);
  const end = new AbortController();
  const slow = first.storage.watch(context, { resourceVersion, signal: end.signal })[Symbol.asyncIterator]();
  const begun = slow.next();
  for (let round = 0; round < 8; round += 1) await write(round);
  await begun;
  await expect(slow.next()).rejects.toMatchObject({ code: 'Expired' });
  // What memory has dropped is in the file.
  expect(await seen(first.storage, resourceVersion, 8)).toHaveLength(8);
  for (let round = 0; round < 12; round += 1) await write(round);
  await expect(seen(first.storage, resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  first.database.close();
});
