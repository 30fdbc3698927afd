import { type FileHandle, mkdir, open, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, removeFile } from './file-system.ts';
import { locked } from './ref-updates.ts';

const ATTEMPTS = 5;

/** Git's lock of one loose ref: `<ref>.lock`, created exclusively. Throws RefConflictError (`locked`) if it is taken. */
export async function lockRef(gitDir: string, ref: string): Promise<FileHandle> {
  const path = join(gitDir, `${ref}.lock`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await open(path, 'wx');
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') throw locked(ref);
      // Another process may remove the folder as empty between the two calls.
      if (errnoOf(error) !== 'ENOENT' || attempt === ATTEMPTS) throw error;
      await mkdir(dirname(path), { recursive: true });
    }
  }
}

export function unlockRef(gitDir: string, ref: string): Promise<void> {
  return removeFile(join(gitDir, `${ref}.lock`));
}

/** Removes the folders above a ref that are empty now, so that a ref can take their name. */
export async function removeEmptyParents(gitDir: string, ref: string): Promise<void> {
  // `refs/heads` and the like stay.
  for (let folder = dirname(ref); folder.split('/').length > 2; folder = dirname(folder)) {
    try {
      await rmdir(join(gitDir, folder));
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errnoOf(error) ?? '')) return;
      throw error;
    }
  }
}
