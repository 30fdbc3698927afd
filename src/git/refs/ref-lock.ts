import { linkSync, mkdirSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errnoOf, isMissing } from '../../foundation/files/file-system.ts';
import { lockMark } from './held-folders.ts';
import { ancestors, lockedError } from './ref-updates.ts';

const MAX_ATTEMPTS = 5;
const NO_LINK = new Set(['EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM', 'EACCES']);

/**
 * Takes Git's lock of one loose ref: `<ref>.lock`, created exclusively. Throws RefConflictError (`locked`) if it is held. With many
 * locks, later ones can be a hard link (`linkTo`) to the first, which is much faster on a busy disk than a new file. It is
 * synchronous since it does not wait for the disk, and another thread would take several times as long.
 */
export function lockRef(gitDir: string, ref: string, linkTo?: string): void {
  const path = join(gitDir, `${ref}.lock`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      create(path, linkTo === undefined ? undefined : join(gitDir, `${linkTo}.lock`));
      return;
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') throw lockedError(ref);
      // Another process may remove the folder as empty between the two calls.
      if (errnoOf(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error;
      mkdirSync(dirname(path), { recursive: true });
    }
  }
}

function create(path: string, linkTo: string | undefined): void {
  if (linkTo !== undefined) {
    try {
      linkSync(linkTo, path);
      return;
    } catch (error) {
      // A file system without links, or no more to this file.
      if (!NO_LINK.has(errnoOf(error) ?? '')) throw error;
    }
  }
  createLock(path);
}

/** Creates a lock file that says whose it is. Throws EEXIST if it is there. */
export function createLock(path: string): void {
  writeFileSync(path, lockMark(), { flag: 'wx' });
}

export function unlockRef(gitDir: string, ref: string): void {
  try {
    unlinkSync(join(gitDir, `${ref}.lock`));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Removes the folders above refs that are empty now, so that a ref can take their name. */
export function removeEmptyParents(gitDir: string, refs: readonly string[]): void {
  // `refs/heads` and the like stay.
  const folders = new Set(refs.flatMap(ancestors));
  for (const folder of [...folders].sort((a, b) => b.length - a.length)) {
    try {
      rmdirSync(join(gitDir, folder));
    } catch (error) {
      if (!isMissing(error) && !['ENOTEMPTY', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error;
    }
  }
}
