import { type BigIntStats, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { messageOf, SluiceError } from '../sluice-error.ts';

const holderSchema = z.object({
  host: z.string(),
  pid: z.int().positive(),
  /** RFC 3339. */
  since: z.string(),
  /** Information that the holder gives about itself. */
  about: z.unknown().optional(),
});

export type LockHolder = Readonly<z.infer<typeof holderSchema>>;

export interface LockRequest {
  /** Information that the holder gives about itself, for later callers; see `lockHolder`. */
  readonly holder?: { readonly since: string; readonly about?: unknown };
  /** Milliseconds to wait for another holder. Default 250: a process that only reads the holder takes the lock for a moment, too. */
  readonly timeoutMs?: number;
}

const RETRY_MS = 5;
const TIMEOUT_MS = 250;
/** Milliseconds in which a new holder writes who it is. */
const HOLDER_TIMEOUT_MS = 1000;
const SQLITE_BUSY = 5;

/**
 * A lock that one process holds at a time: SQLite's lock of a file that stays empty. The kernel releases it when the process ends, in
 * any way, so nothing is left behind, and neither the number of a process nor the name of its machine decides anything: a container
 * that is created again is a new lock at once. The folder must be on a file system with POSIX locks.
 *
 * No other code may open the file: closing it would release the locks of the whole process (fcntl(2)).
 */
export class ProcessLock {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #file: string;
  /** The statement of the previous holder if it ended without releasing the lock; undefined if it released it. */
  readonly abandonedBy: LockHolder | undefined;

  private constructor(path: string, database: DatabaseSync, abandonedBy: LockHolder | undefined) {
    this.#path = path;
    this.#database = database;
    this.abandonedBy = abandonedBy;
    this.#file = fileOf(path) ?? '';
  }

  /** Acquires the lock; creates the folder if it is missing. Throws Busy, with the holder as details, if another process keeps it. */
  static async acquire(path: string, request: LockRequest = {}): Promise<ProcessLock> {
    const { holder, timeoutMs = TIMEOUT_MS } = request;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    let database = tryLock(path);
    for (let waited = 0; database === undefined; waited += RETRY_MS) {
      if (waited >= timeoutMs) throw heldBy(path, await readHolder(path));
      await pause(RETRY_MS);
      database = tryLock(path);
    }
    try {
      const lock = new ProcessLock(path, database, await readHolder(path));
      await rm(holderFile(path), { force: true });
      if (holder !== undefined) await writeHolder(path, { host: hostname(), pid: process.pid, ...holder });
      return lock;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** Runs `section` while the lock is held. */
  static async run<Result>(path: string, request: LockRequest, section: () => Promise<Result>): Promise<Result> {
    const lock = await ProcessLock.acquire(path, request);
    try {
      return await section();
    } finally {
      await lock.release();
    }
  }

  /** False if the file was removed, so that another process may hold a new lock at the same path. */
  isHeld(): boolean {
    return this.#database.isOpen && fileOf(this.#path) === this.#file;
  }

  async release(): Promise<void> {
    if (!this.#database.isOpen) return;
    if (this.isHeld()) await rm(holderFile(this.#path), { force: true });
    this.#database.close();
  }
}

/** Returns the holder of a lock; undefined if it is free. A holder without a statement has process number 0. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  for (let waited = 0; ; waited += RETRY_MS) {
    // Reading must not create the file.
    if (fileOf(path) === undefined) return undefined;
    const database = tryLock(path);
    database?.close();
    if (database !== undefined) return undefined;
    const holder = await readHolder(path);
    if (holder !== undefined) return holder;
    if (waited >= HOLDER_TIMEOUT_MS) return { host: '', pid: 0, since: '' };
    await pause(RETRY_MS);
  }
}

/** A database with the lock of its file; undefined if another one has it. */
function tryLock(path: string): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    if ((error as { readonly errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    const message = `cannot lock ${path}: ${messageOf(error)}; the folder must be writable, and on a file system with locks`;
    throw new SluiceError('Unavailable', message, { cause: error });
  }
}

/** Identifies the file at a path; undefined if it does not exist. */
function fileOf(path: string): string | undefined {
  const stats: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

function holderFile(path: string): string {
  return `${path}.json`;
}

/** Whole at once. Only the holder writes it. */
async function writeHolder(path: string, holder: LockHolder): Promise<void> {
  const temporary = `${holderFile(path)}.tmp`;
  await writeFile(temporary, JSON.stringify(holder), { mode: 0o600 });
  await rename(temporary, holderFile(path));
}

/** Reads the statement of the last holder, which may have ended. */
async function readHolder(path: string): Promise<LockHolder | undefined> {
  let text: string;
  try {
    text = await readFile(holderFile(path), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    // The statement is only informative, and another version may write another format.
    return undefined;
  }
}

function heldBy(path: string, holder: LockHolder | undefined): SluiceError {
  const where = holder === undefined || holder.host === hostname() ? '' : ` on ${holder.host}`;
  const who = holder === undefined ? 'another process' : `process ${holder.pid}${where}`;
  const since = holder === undefined ? '' : ` since ${holder.since}`;
  return new SluiceError('Busy', `${who} holds ${path}${since}; wait until it has ended, or stop it`, {
    details: holder,
  });
}
