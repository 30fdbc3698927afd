import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { checkLedgerSchema, prepareLedgerSchema } from './schema.ts';

/** Milliseconds that a write waits for that of another process. */
const BUSY_TIMEOUT_MS = 5000;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** SQLite does not wait for other processes when it sets the mode of a new file. */
const MAX_MODE_ATTEMPTS = 100;
const ATTEMPT_PAUSE_MS = 20;

/**
 * Opens the file of a ledger; creates a missing one, readable for its owner only. Throws Corrupt, Unsupported, Busy or
 * Unavailable.
 */
export function openLedgerDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    setMode(database);
    prepareLedgerSchema(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw ledgerError(error, path);
  }
}

/**
 * Opens the file of a ledger to read it, which leaves it and its folder as they are: it may be a copy on a disk that cannot be written.
 * Throws Corrupt, Unsupported or Unavailable.
 */
export function openLedgerReadOnly(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    // While a process has it open, what it wrote last can be in a file beside it. Otherwise SQLite would make such files.
    const isOpen = existsSync(`${path}-wal`) || existsSync(`${path}-shm`);
    const place = pathToFileURL(path);
    if (!isOpen) place.searchParams.set('immutable', '1');
    database = new DatabaseSync(place, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    checkLedgerSchema(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw ledgerError(error, path);
  }
}

/** An error of SQLite or the file system, with the file and the next step. */
export function ledgerError(error: unknown, path: string): SluiceError {
  if (error instanceof SluiceError) return error;
  const code = primaryCode(error);
  const cause = { cause: error };
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB)
    return new SluiceError(
      'Corrupt',
      `the trust ledger ${path} is damaged: ${messageOf(error)}; bring a backup back with "sluice restore"`,
      cause,
    );
  if (code === SQLITE_BUSY)
    return new SluiceError(
      'Busy',
      `cannot write the trust ledger ${path}: another process is writing it for more than ${BUSY_TIMEOUT_MS / 1000} s; try again`,
      cause,
    );
  return new SluiceError('Unavailable', `cannot use the trust ledger ${path}: ${messageOf(error)}`, cause);
}

function setMode(database: DatabaseSync): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
      return;
    } catch (error) {
      if (primaryCode(error) !== SQLITE_BUSY || attempt >= MAX_MODE_ATTEMPTS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ATTEMPT_PAUSE_MS);
    }
  }
}

/** Without its details, which are in the higher bytes. */
function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) % 256;
}
