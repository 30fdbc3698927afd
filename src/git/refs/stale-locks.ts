import { join } from 'node:path';
import { removeFile } from '../../foundation/files/file-system.ts';
import { ObservedFiles } from '../disk/observed-files.ts';
import { isLeftLock, locksOf, removeLeftLock } from './held-folders.ts';

/**
 * Of all repositories of this process, since one may be opened again for each attempt. Locks of one transaction may be links to one file, whose
 * time of change changes with each that is removed.
 */
const observed = new ObservedFiles(undefined, ({ ino, birthtimeNs, mtimeNs }) => `${ino}:${birthtimeNs}:${mtimeNs}`);

/**
 * Releases refs whose lock was left by a killed writer. Git never does that, so the ref would stay locked forever. A lock counts as
 * left if its writer held a folder that this process holds now (see held-folders.ts), or else when this process has observed the same file
 * twice, `staleAfter` milliseconds of its own running time apart.
 */
export class StaleLocks {
  readonly #gitDir: string;
  readonly #staleAfter: number;

  constructor(gitDir: string, staleAfter: number) {
    this.#gitDir = gitDir;
    this.#staleAfter = staleAfter;
  }

  /**
   * To be called when a writer found one of these refs locked; without refs, when it may be any. True if a stale lock was removed and trying
   * again makes sense.
   */
  async release(refs: readonly string[] | undefined): Promise<boolean> {
    const some = [...(refs ?? []).map((ref) => `${ref}.lock`), 'packed-refs.lock', 'packed-refs.new'];
    const paths = refs === undefined ? await locksOf(this.#gitDir) : some.map((file) => join(this.#gitDir, file));
    let released = false;
    for (const path of new Set(paths)) released = (await this.#release(path)) || released;
    return released;
  }

  async #release(path: string): Promise<boolean> {
    if (isLeftLock(path)) {
      // At once: another writer of this process may take the lock during a pause.
      removeLeftLock(path);
      return true;
    }
    const age = await observed.age(path);
    // Observed for the first time, its writer may be at work, even if `staleAfter` is 0.
    if (age === undefined || age === 0 || age < this.#staleAfter) return false;
    observed.forget(path);
    await removeFile(path);
    return true;
  }
}
