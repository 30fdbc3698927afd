import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../../../foundation/files/file-system.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';

/** The largest RSA keys take a fifth of it. */
const MAX_KEY_BYTES = 64 * 1024;
/** Permission bits for the group and for other users. */
const OTHERS = 0o077;

/**
 * Reads a private key file. Throws NotFound for a missing file, Refused with the command to run for one that other users can read,
 * and Unavailable if it cannot be read.
 */
export function readKeyFile(path: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const status = fstatSync(descriptor);
    if (!status.isFile() || status.size > MAX_KEY_BYTES)
      throw new SluiceError('InvalidInput', `the signing key ${path} is no file with a private key`);
    if (process.platform !== 'win32' && (status.mode & OTHERS) !== 0)
      throw new SluiceError('Refused', `other users may read the signing key ${path}; run: chmod 600 ${quoted(path)}`);
    return readFileSync(descriptor, 'utf8');
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    const missing = errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR';
    const reason = missing ? 'there is no such file' : messageOf(error);
    throw new SluiceError(missing ? 'NotFound' : 'Unavailable', `cannot read the signing key ${path}: ${reason}`, {
      cause: error,
    });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * Writes a key if there is none yet, complete and durable or not at all. Of several concurrent processes one succeeds; for the
 * others it returns false.
 */
export function createKeyFile(path: string, text: string): boolean {
  return withTemporary(path, text, (temporary) => {
    try {
      linkSync(temporary, path);
      return true;
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false;
      throw error;
    }
  });
}

/** Replaces a key; the previous one is deleted. */
export function replaceKeyFile(path: string, text: string): void {
  withTemporary(path, text, (temporary) => renameSync(temporary, path));
}

function withTemporary<Result>(path: string, text: string, use: (temporary: string) => Result): Result {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    const result = use(temporary);
    syncFolder(dirname(path));
    return result;
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot write the signing key ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    rmSync(temporary, { force: true });
  }
}

function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** For a command to copy into a shell. */
function quoted(path: string): string {
  return /^[A-Za-z0-9._/+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
