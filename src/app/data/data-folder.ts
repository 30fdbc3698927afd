import { createHash } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type ErrorCode, isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../foundation/time/clock.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { FolderLock } from './folder-lock.ts';

/** Used where neither --data nor SLUICE_DATA names another folder. */
export const DEFAULT_DATA_FOLDER = '.sluice';

/** The places in a data folder. */
export interface DataFolder {
  /** Absolute. */
  readonly path: string;
  /** As the user wrote it, for commands that a message proposes. */
  readonly shown: string;
  /** All objects that are not packages, and their events: a SQLite file. */
  readonly database: string;
  /** Lock of the one process that writes the database. */
  readonly databaseLock: string;
  /** Lock of a running `sluice up`. */
  readonly upLock: string;
  /** Lock of a replica of `sluice serve` whose cache folder this is. */
  readonly replicaLock: string;
  /** Kubeconfig for clients of a running `sluice up`. */
  readonly kubeconfig: string;
  /** Keys and certificates of the API server. */
  readonly pki: string;
  /** Hashes of bearer tokens and whose they are. */
  readonly tokens: string;
  /** Every write through the API, a line each. */
  readonly auditLog: string;
}

export function dataFolder(path: string): DataFolder {
  const absolute = resolve(path);
  return {
    path: absolute,
    shown: path,
    database: join(absolute, 'objects.db'),
    databaseLock: join(absolute, 'objects-lock'),
    upLock: join(absolute, 'up-lock'),
    replicaLock: join(absolute, 'replica-lock'),
    kubeconfig: join(absolute, 'kubeconfig'),
    pki: join(absolute, 'pki'),
    tokens: join(absolute, 'tokens.csv'),
    auditLog: join(absolute, 'audit.log'),
  };
}

/** Returns the path of a mirror of a remote delivery target for read-only commands; it may be deleted at any time. */
export function targetMirror({ path }: DataFolder, { spec }: DeliveryTarget): string {
  const id = createHash('sha256').update(spec.git.repo).digest('hex').slice(0, 16);
  return join(path, 'cache', 'targets', `${id}.git`);
}

/** Creates the folder. Only its owner may read it: it contains credentials and copies of repositories. */
export function createDataFolder(folder: DataFolder): Promise<void> {
  return makeOrExplain(folder, 'data folder', 'Unavailable', '--data or SLUICE_DATA');
}

/**
 * Creates the folder of a replica in a cluster, before anything starts: a wrong option must end the process. Returns the lock of the folder,
 * since two processes would damage the mirrors of each other; Busy with its holder if another process keeps it.
 */
export async function takeCacheFolder(folder: DataFolder, clock: Clock): Promise<FolderLock> {
  await makeOrExplain(folder, 'cache folder', 'InvalidInput', '--cache-dir');
  try {
    const holder = { since: timestamp(clock.now()) };
    return await FolderLock.acquire(folder.path, folder.replicaLock, { holder });
  } catch (error) {
    if (!isSluiceError(error, 'Busy')) throw error;
    const message = `another replica uses the cache folder ${folder.path}: ${error.message}, or give each replica a folder of its own with --cache-dir`;
    throw new SluiceError('Busy', message, { cause: error });
  }
}

async function makeOrExplain(folder: DataFolder, what: string, code: ErrorCode, option: string): Promise<void> {
  try {
    await makeFolder(folder.path);
  } catch (error) {
    const message = `cannot make the ${what} ${folder.path}: ${(error as Error).message}; name another one with ${option}`;
    throw new SluiceError(code, message, { cause: error });
  }
}

/**
 * The recursive mkdir of Node.js 24 does not return if the file system refuses with ENOENT, as /proc does, so each level is created
 * separately.
 */
async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = path; !(await isThere(at)) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  for (const at of missing.reverse()) {
    try {
      await mkdir(at, { mode: 0o700 });
    } catch (error) {
      // Another process made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  // A file in its place.
  if (!(await stat(path)).isDirectory())
    throw Object.assign(new Error(`ENOTDIR: ${path} is a file`), { code: 'ENOTDIR' });
}

/**
 * Throws NotFound with the next step if a data folder has no database. A server whose folder was removed makes parts of it again, and
 * an empty list would be wrong there.
 */
export async function expectDatabase({ database, path }: DataFolder): Promise<void> {
  if (await exists(database)) return;
  throw new SluiceError(
    'NotFound',
    `the data folder ${path} has no database (${database}): it is new, or was removed while "sluice up" ran; register a first repository with "sluice repo reg", restore a backup, or name another folder with --data or SLUICE_DATA`,
  );
}

/** Throws NotFound with the next step if there is no data folder. */
export async function expectDataFolder(folder: DataFolder): Promise<void> {
  try {
    if ((await stat(folder.path)).isDirectory()) return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new SluiceError('Unavailable', `cannot read the data folder ${folder.path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    throw new SluiceError(
      'NotFound',
      `there is no data folder ${folder.path}; name another one with --data or SLUICE_DATA, or create it with "sluice up" or "sluice repo reg"`,
      { cause: error },
    );
  }
  throw new SluiceError('InvalidInput', `${folder.path} is not a folder; name another one with --data or SLUICE_DATA`);
}

/** True if the path exists. */
export async function exists(path: string): Promise<boolean> {
  try {
    return await isThere(path);
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** As `exists`, with the error of the system. */
async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
