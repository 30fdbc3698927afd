import { closeSync, mkdirSync, openSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errnoOf, isMissing } from './file-system.ts';
import { ancestors, locked } from './ref-updates.ts';

const ATTEMPTS = 5;

/**
 * Takes Git's lock of one loose ref: `<ref>.lock`, created exclusively. Throws RefConflictError (`locked`) if it is taken. Like all
 * here it waits for no disk, so that handing it to another thread would take several times as long.
 */
export function lockRef(gitDir: string, ref: string): void {
  const path = join(gitDir, `${ref}.lock`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      closeSync(openSync(path, 'wx'));
      return;
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') throw locked(ref);
      // Another process may remove the folder as empty between the two calls.
      if (errnoOf(error) !== 'ENOENT' || attempt === ATTEMPTS) throw error;
      mkdirSync(dirname(path), { recursive: true });
    }
  }
}

export function unlockRef(gitDir: string, ref: string): void {
  rmSync(join(gitDir, `${ref}.lock`), { force: true });
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
