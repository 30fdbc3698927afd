import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { dropAttachments, hasAttachments } from './attachments.ts';
import { syncPath } from './back-up.ts';
import { checkBackup } from './check-backup.ts';
import { checkSchema } from './schema.ts';

export interface RestoreOptions {
  readonly backup: string;
  /** Path of the database, which need not exist. The caller holds the lock of its writer. */
  readonly database: string;
  /** Path to which the current database is moved; it does not exist yet. */
  readonly aside: string;
}

/** State that must not be reused: versions that were given to clients, and watches from after the backup. */
interface UsedState {
  readonly version: number;
  readonly topics: readonly string[];
}

/** Added to the highest known version, since clients may have seen versions that were never stored. */
const VERSION_MARGIN = 10_000;
/** The same where the present database cannot be read, so that its last version is unknown. */
const UNKNOWN_VERSION_MARGIN = 1_000_000_000_000;
/** The result code of SQLite for a database that another connection has locked. */
const SQLITE_BUSY = 5;

/**
 * Replaces a database by a backup. The backup is copied and checked first; an existing database is moved aside. Throws Corrupt or
 * Unsupported for an invalid backup, Busy while other processes read; then nothing has changed.
 */
export function restore(options: RestoreOptions): void {
  for (const _step of restoreSteps(options)) {
    // Each step is done when it is yielded.
  }
}

/** `restore` step by step: after any of them the folder has the database of before or the restored one, complete. */
export function* restoreSteps({ backup, database, aside }: RestoreOptions): Generator<string, void> {
  const temporary = `${database}.restoring`;
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(temporary + suffix, { force: true });
  copy(backup, temporary);
  yield 'copied';
  const there = existsSync(database);
  const past = there ? usedStateOf(database) : { version: 0, topics: [] };
  prepare(temporary, backup, past ?? { version: UNKNOWN_VERSION_MARGIN, topics: [] });
  syncPath(temporary);
  yield 'checked and prepared';
  if (there && past !== undefined) settle(database);
  partsAside(database, aside);
  yield 'the present database is one file';
  if (there) {
    linkSync(database, aside);
    syncPath(dirname(database));
    yield 'the present database is kept aside';
  }
  renameSync(temporary, database);
  syncPath(dirname(database));
  yield 'restored';
}

/**
 * One of the files that go with the objects of a backup; undefined if it has none of that name, as those of earlier versions. Throws
 * Corrupt for any other file.
 */
export function readAttachment(backup: string, name: string): Uint8Array | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(backup, { readOnly: true, timeout: 5000 });
    if (!hasAttachments(database)) return undefined;
    const content = database.prepare('SELECT content FROM attachments WHERE name = ?').get(name)?.content;
    return content instanceof Uint8Array ? content : undefined;
  } catch (error) {
    throw refused(error, backup);
  } finally {
    database?.close();
  }
}

/** A copy by SQLite contains all committed data, including the write-ahead log. */
function copy(backup: string, target: string): void {
  let source: DatabaseSync | undefined;
  try {
    source = new DatabaseSync(backup, { readOnly: true, timeout: 5000 });
    checkSchema(source, backup);
    closeSync(openSync(target, 'wx', 0o600));
    source.prepare('VACUUM INTO ?').run(target);
  } catch (error) {
    rmSync(target, { force: true });
    throw refused(error, backup);
  } finally {
    source?.close();
  }
}

/** Checks the copy and lets it continue after the current database: no version is used twice, and old watches end. */
function prepare(copied: string, backup: string, past: UsedState): void {
  const database = new DatabaseSync(copied);
  try {
    // A copy that is not finished is thrown away.
    database.exec('PRAGMA journal_mode = MEMORY');
    checkBackup(database, backup);
    const own = readUsedState(database);
    const start = Math.max(own.version, past.version) + VERSION_MARGIN;
    database.exec('BEGIN; DELETE FROM events; DELETE FROM floors;');
    const raise = database.prepare('INSERT INTO floors (topic, version) VALUES (?, ?)');
    for (const topic of new Set([...own.topics, ...past.topics])) raise.run(topic, start);
    database
      .prepare(
        "INSERT INTO settings (name, value) VALUES ('reservedVersion', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      )
      .run(String(start));
    database.exec('COMMIT');
    dropAttachments(database);
  } catch (error) {
    rmSync(copied);
    throw refused(error, backup);
  } finally {
    database.close();
  }
}

/** Undefined for a database that cannot be read. */
function usedStateOf(path: string): UsedState | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    return readUsedState(database);
  } catch {
    // The cause does not matter: a damaged database is the reason for restoring a backup.
    return undefined;
  } finally {
    database?.close();
  }
}

function readUsedState(database: DatabaseSync): UsedState {
  const highest = database
    .prepare(
      `SELECT max(
         coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'reservedVersion'), 0),
         coalesce((SELECT max(version) FROM objects), 0),
         coalesce((SELECT max(version) FROM events), 0),
         coalesce((SELECT max(version) FROM floors), 0)) AS version`,
    )
    .get();
  const topics = database
    .prepare('SELECT topic FROM objects UNION SELECT topic FROM events UNION SELECT topic FROM floors')
    .all();
  return { version: Number(highest?.version ?? 0), topics: topics.map(({ topic }) => String(topic)) };
}

/**
 * Merges the current database into one file. Its additional files would otherwise be taken for those of the new one.
 */
function settle(path: string): void {
  const database = new DatabaseSync(path, { timeout: 5000 });
  try {
    // No other process can have it open then.
    database.exec('PRAGMA journal_mode = DELETE');
  } catch (error) {
    // The lower byte is the code without its details. Other failures mean damage: no data can be recovered.
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY) {
      throw new SluiceError('Busy', `another process reads ${path}; try again when it has ended`, { cause: error });
    }
  } finally {
    database.close();
  }
}

/** The remaining files belong to a damaged database; SQLite would delete what it cannot read. */
function partsAside(path: string, aside: string): void {
  for (const suffix of ['-wal', '-shm', '-journal'])
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
}

function refused(error: unknown, backup: string): SluiceError {
  if (error instanceof SluiceError) return error;
  return new SluiceError(
    'Corrupt',
    `${backup} cannot be restored: ${messageOf(error)}; nothing was changed; use another backup`,
    { cause: error },
  );
}
