import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import type { RequestContext } from '../../object/request-context.ts';
import { widgetKind } from '../../schema/testing.ts';
import { EventLog } from '../../watch/event-log.ts';
import { backUp } from './back-up.ts';
import { ObjectDatabase } from './object-database.ts';
import { restore } from './restore.ts';

const context: RequestContext = { actor: { name: 'test' }, face: 'api' };
const clock = new ManualClock();
let folder: string;
let path: string;
let backup: string;
let aside: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-restore-'));
  [path, backup, aside] = [join(folder, 'objects.db'), join(folder, 'backup.db'), join(folder, 'aside.db')];
});
afterEach(() => rm(folder, { recursive: true }));

function open(at = path) {
  const database = ObjectDatabase.open({ path: at, clock });
  const log = new EventLog({ clock, journal: database.journal });
  database.attach(log);
  const storage = database.storage(widgetKind, log);
  return {
    log,
    storage,
    create: (name: string) =>
      storage.create(context, widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: {} })),
    names: async () => (await storage.list(context)).items.map(({ metadata }) => metadata.name),
    close: () => {
      log.close();
      database.close();
    },
  };
}

async function namesIn(at = path): Promise<string[]> {
  const opened = open(at);
  try {
    return await opened.names();
  } finally {
    opened.close();
  }
}

/** A database with a and b, of which a is in the backup. */
async function prepared(): Promise<void> {
  const first = open();
  await first.create('a');
  backUp({ database: path, target: backup, force: false, clock });
  await first.create('b');
  first.close();
}

function sql(at: string, text: string): void {
  const database = new DatabaseSync(at);
  database.exec(text);
  database.close();
}

describe('backup', () => {
  test('is complete or not there, for its owner only, and replaces nothing unasked', async () => {
    await prepared();
    expect((await stat(backup)).mode & 0o777).toBe(0o600);
    const again = { database: path, target: backup, clock };
    expect(() => backUp({ ...again, force: false })).toThrow(/exists already; .*--force/);
    backUp({ ...again, force: true });
    expect(await namesIn(backup)).toEqual(['a', 'b']);
    const nowhere = { ...again, target: join(folder, 'none', 'x.db'), force: false };
    expect(() => backUp(nowhere)).toThrow(expect.objectContaining({ code: 'Unavailable' }));
    expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });
});

describe('restore', () => {
  test('restores the backup, and keeps the current database', async () => {
    await prepared();
    restore({ backup, database: path, aside });
    expect(await namesIn()).toEqual(['a']);
    expect(await namesIn(aside)).toEqual(['a', 'b']);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    restore({ backup: aside, database: path, aside: `${aside}.2` });
    expect(await namesIn()).toEqual(['a', 'b']);
  });

  test('into a folder without a database', async () => {
    await prepared();
    const fresh = join(folder, 'fresh.db');
    restore({ backup, database: fresh, aside });
    expect(await namesIn(fresh)).toEqual(['a']);
    expect(await readdir(folder)).not.toContain('aside.db');
  });

  test('no version is repeated, and earlier watches list again', async () => {
    await prepared();
    const before = open();
    const { resourceVersion } = (await before.create('c')).metadata;
    before.close();
    restore({ backup, database: path, aside });
    const after = open();
    expect(BigInt((await after.create('d')).metadata.resourceVersion)).toBeGreaterThan(BigInt(resourceVersion));
    const watch = async (version: string) => {
      for await (const event of after.storage.watch(context, {
        resourceVersion: version,
        signal: new AbortController().signal,
      }))
        return event.type === 'BOOKMARK' ? event.type : event.object.metadata.name;
      return undefined;
    };
    await expect(watch(resourceVersion)).rejects.toMatchObject({ code: 'Expired' });
    const { resourceVersion: now } = await after.storage.list(context);
    const seen = watch(now);
    await after.create('e');
    expect(await seen).toBe('e');
    after.close();
  });

  test('of a database that is damaged the parts are kept', async () => {
    await prepared();
    await writeFile(path, 'nothing that can be read'.repeat(500));
    await writeFile(`${path}-wal`, 'nor this');
    restore({ backup, database: path, aside });
    expect(await namesIn()).toEqual(['a']);
    expect(await readFile(aside, 'utf8')).toContain('nothing that can be read');
    expect(await readFile(`${aside}-wal`, 'utf8')).toBe('nor this');
    const after = open();
    expect(BigInt((await after.create('x')).metadata.resourceVersion)).toBeGreaterThan(1_000_000_000_000n);
    after.close();
  });

  test('not while others have it open', async () => {
    await prepared();
    const reader = new DatabaseSync(path, { readOnly: true });
    sql(path, 'PRAGMA journal_mode = WAL');
    expect(reader.prepare('SELECT count(*) AS n FROM objects').get()).toEqual({ n: 2 });
    expect(() => restore({ backup, database: path, aside })).toThrow(expect.objectContaining({ code: 'Busy' }));
    reader.close();
    expect(await namesIn()).toEqual(['a', 'b']);
  });

  test.each([
    ['something else', (at: string) => writeFile(at, 'not a database'.repeat(1000))],
    ['an empty file', (at: string) => writeFile(at, '')],
    ['half a backup', async (at: string) => truncate(at, Math.floor((await stat(at)).size / 2))],
    ['a form of another version', (at: string) => sql(at, 'PRAGMA user_version = 99')],
    ['a trigger', (at: string) => sql(at, 'CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM objects; END')],
    ['no JSON', (at: string) => sql(at, "UPDATE objects SET object = '{'")],
    ['an object without a name', (at: string) => sql(at, `UPDATE objects SET object = '{"kind":"Widget"}'`)],
    ['a version beyond all numbers', (at: string) => sql(at, 'UPDATE objects SET version = 9223372036854775807')],
    ['a version that is none', (at: string) => sql(at, "UPDATE settings SET value = 'x'")],
    ['depths', (at: string) => sql(at, `UPDATE objects SET object = '${deepObject(5000)}'`)],
  ])('refuses %s, and changes nothing', async (_what, damage) => {
    await prepared();
    await damage(backup);
    expect(() => restore({ backup, database: path, aside })).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^(Corrupt|Unsupported)$/) }),
    );
    expect(await namesIn()).toEqual(['a', 'b']);
    expect(await readdir(folder)).not.toContain('aside.db');
    expect(await readdir(folder)).not.toContain('objects.db.restoring');
  });

  test('killed after any step it leaves a database that can be used, and can be done again', async () => {
    await prepared();
    const original = join(folder, 'original.db');
    await copyFile(path, original);
    const script = join(folder, 'victim.mjs');
    await writeFile(
      script,
      `import { restoreSteps } from ${JSON.stringify(new URL('./restore.ts', import.meta.url).href)};
       const [database, backup, aside, last] = process.argv.slice(2);
       let step = 0;
       for (const _ of restoreSteps({ database, backup, aside })) if (++step === Number(last)) process.kill(process.pid, 'SIGKILL');
       console.log(step);`,
    );
    let steps = 0;
    for (let last = 1; ; last += 1) {
      const home = await mkdtemp(join(folder, 'run-'));
      const [database, kept] = [join(home, 'objects.db'), join(home, 'aside.db')];
      await copyFile(original, database);
      const { signal, stdout } = spawnSync(process.execPath, [script, database, backup, kept, String(last)], {
        encoding: 'utf8',
      });
      if (signal === null) {
        steps = Number(stdout);
        break;
      }
      expect([['a'], ['a', 'b']]).toContainEqual(await namesIn(database));
      restore({ backup, database, aside: `${kept}.again` });
      expect(await namesIn(database)).toEqual(['a']);
      const left = (await readdir(home)).filter((name) => name.includes('restoring'));
      expect(left).toEqual([]);
    }
    expect(steps).toBe(5);
  });
});

function deepObject(depth: number): string {
  const metadata = { name: 'a', uid: 'a', resourceVersion: '1' };
  const [start] = JSON.stringify({ apiVersion: 'v1', kind: 'Widget', metadata }).split(/\}$/);
  return `${start},"spec":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
}
