import { randomUUID } from 'node:crypto';
import { link, open, rename, rm } from 'node:fs/promises';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

/** Writes a file that only its owner can read, complete or not at all. AlreadyExists if it exists, unless `force` replaces it. */
export async function writeOwnFile(path: string, text: string, force: boolean): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    if (force) await rename(temporary, path);
    else await link(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new SluiceError('AlreadyExists', `${path} exists; name another file, or replace it with --force`);
    throw new SluiceError('Unavailable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    await rm(temporary, { force: true });
  }
}
