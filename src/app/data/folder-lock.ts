import { realpath } from 'node:fs/promises';
import { type LockRequest, ProcessLock } from '../../foundation/files/process-lock.ts';
import { holdFolder } from '../../git/refs/held-folders.ts';

/** The lock of a data folder or cache folder: while this process holds it, no other one changes the repositories in the folder. */
export class FolderLock {
  readonly #lock: ProcessLock;
  readonly #end: () => void;

  private constructor(lock: ProcessLock, end: () => void) {
    this.#lock = lock;
    this.#end = end;
  }

  /** `path` is that of the lock. Throws Busy as `ProcessLock.acquire` does. */
  static async acquire(folder: string, path: string, request: LockRequest): Promise<FolderLock> {
    const lock = await ProcessLock.acquire(path, request);
    return new FolderLock(lock, holdFolder(await realpath(folder)));
  }

  release(): Promise<void> {
    this.#end();
    return this.#lock.release();
  }
}
