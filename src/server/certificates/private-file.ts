import { randomUUID } from 'node:crypto';
import { chmod, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { errnoOf, isMissing, readFolder, syncFolder } from '../../git/file-system.ts';

/** A lock file this old, in milliseconds, is left over from a process that was killed. */
const STALE_LOCK = 10_000;
const LOCK_RETRY = 20;
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

/** Makes a folder, if need be, and sees to it that only its owner may look inside. Unavailable if it cannot. */
export async function makePrivateFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
  } catch (error) {
    throw new SluiceError('Unavailable', `cannot make the folder ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Writes a file that only its owner may read: complete and durable, or not at all. The mode is 0600 also where the file
 * was there with a wider one, since a new file takes its place. Makes the folder, with mode 0700. Only one writer at a time:
 * what a killed one left is removed. Unavailable if it cannot.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const leftover = (name: string) => name.startsWith(`${basename(path)}.`) && name.endsWith(TEMPORARY);
  for (const { name } of await readFolder(dirname(path)))
    if (leftover(name)) await rm(join(dirname(path), name), { force: true });
  await replaceVia(`${path}.${randomUUID()}${TEMPORARY}`, path, async () => text);
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
  await replaceVia(`${path}.lock`, path, async () => change(await readPrivateFile(path, maxBytes)));
}

/** The temporary file is created exclusively, so one of a fixed name is a lock as well. */
async function replaceVia(temporary: string, path: string, text: () => Promise<string | undefined>): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await openExclusively(temporary);
    let inPlace = false;
    try {
      const content = await text();
      if (content === undefined) return;
      await handle.writeFile(content);
      await handle.sync();
      await rename(temporary, path);
      inPlace = true;
      await syncFolder(dirname(path));
    } finally {
      await handle.close();
      // Once it is in place, a file of that name is somebody else's lock.
      if (!inPlace) await rm(temporary, { force: true });
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw new SluiceError('Unavailable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function openExclusively(path: string) {
  for (let waited = 0; ; waited += LOCK_RETRY) {
    try {
      return await open(path, 'wx', 0o600);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
    if (waited > STALE_LOCK)
      throw new SluiceError('Busy', `another process is changing ${path}; if none is, remove the file`);
    if (await isStale(path)) await rm(path, { force: true });
    else await pause(LOCK_RETRY);
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > STALE_LOCK;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
