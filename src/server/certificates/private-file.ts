import { randomUUID } from 'node:crypto';
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isMissing, readFolder, syncFolder } from '../../foundation/files/file-system.ts';
import { ProcessLock } from '../../foundation/files/process-lock.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

/** Milliseconds within which another process must finish its change. */
const LOCK_TIMEOUT_MS = 30_000;
const TEMPORARY = '.tmp';

/**
 * Reads a file of at most `maxBytes`; undefined if there is none. InvalidInput if it is longer or no file, Unavailable if
 * it cannot be read.
 */
export async function readPrivateFile(path: string, maxBytes: number): Promise<string | undefined> {
  try {
    const handle = await open(path, 'r');
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new SluiceError('InvalidInput', `${path} is not a file`);
      if (stats.size > maxBytes)
        throw new SluiceError('InvalidInput', `${path} has ${stats.size} bytes, at most ${maxBytes} are read`);
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isMissing(error)) return undefined;
    if (error instanceof SluiceError) throw error;
    throw new SluiceError('Unavailable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Creates a folder unless it exists, and gives it to its owner alone. Unavailable if that fails. */
export async function makePrivateFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot make the folder ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Writes a file that only its owner may read: complete and durable, or not at all. The mode is 0600 even if the file had a wider one,
 * since a new file replaces it. Creates the folder, with mode 0700. There may be only one writer at a time: it removes files that a
 * killed writer left. Unavailable if it fails.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const leftover = (name: string) => name.startsWith(`${basename(path)}.`) && name.endsWith(TEMPORARY);
  for (const { name } of await readFolder(dirname(path)))
    if (leftover(name)) await rm(join(dirname(path), name), { force: true });
  await replace(path, text);
}

/**
 * Changes a file that several processes may change, one after the other: `change` gets the present text (undefined if
 * there is none) and returns the new one, or undefined to leave it. Busy if another process does not finish.
 */
export async function changePrivateFile(
  path: string,
  maxBytes: number,
  change: (text: string | undefined) => string | undefined,
): Promise<void> {
  await ProcessLock.run(`${path}-lock`, { timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    const content = change(await readPrivateFile(path, maxBytes));
    if (content !== undefined) await writePrivateFile(path, content);
  });
}

async function replace(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}${TEMPORARY}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw new SluiceError('Unavailable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}
