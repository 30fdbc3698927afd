import { renameSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf, removeFile, syncFolder } from '../../foundation/files/file-system.ts';
import type { PackedRefs } from './packed-refs.ts';
import type { RefFiles } from './ref-files.ts';
import { createLock } from './ref-lock.ts';
import { lockedError } from './ref-updates.ts';

/** As long as Git waits. Rewriting the file takes some ten milliseconds at 30,000 refs. */
const LOCK_TIMEOUT_MS = 1_000;

/** The `packed-refs` file while its lock is held. Git deletes refs only with that lock. */
export interface LockedPackedRefs {
  readonly refs: PackedRefs;
  /** Replaces the file. `lastLook` is called immediately before that; if it throws, the file stays. */
  replace(refs: PackedRefs, lastLook?: () => void): Promise<void>;
}

/**
 * Runs `task` with the lock of `packed-refs` held, like Git; syncs the written file if `durable`. Throws RefConflictError
 * (`locked`) if another process keeps the lock, or took this one for that of a killed process.
 */
export async function withPackedRefs<T>(
  refFiles: RefFiles,
  durable: boolean,
  task: (file: LockedPackedRefs) => Promise<T>,
): Promise<T> {
  const path = join(refFiles.gitDir, 'packed-refs');
  await takeLock(`${path}.lock`);
  const lock = identityOf(`${path}.lock`);
  const isHeld = () => lock !== undefined && identityOf(`${path}.lock`) === lock;
  const expectHeld = () => {
    if (!isHeld()) throw lockedError('packed-refs');
  };
  try {
    expectHeld();
    return await task({
      refs: await refFiles.packed(),
      async replace(refs, lastLook) {
        expectHeld();
        const file = await open(`${path}.new`, 'w');
        try {
          await file.writeFile(refs.encode());
          if (durable) await file.sync();
        } finally {
          await file.close();
        }
        lastLook?.();
        expectHeld();
        renameSync(`${path}.new`, path);
        refFiles.replacedPacked(refs);
        if (durable) await syncFolder(refFiles.gitDir);
      },
    });
  } finally {
    // A remaining file would block Git.
    if (isHeld()) {
      await removeFile(`${path}.new`);
      await removeFile(`${path}.lock`);
    }
  }
}

/** Distinguishes a file from a later one of the same name, which may get the same inode. */
function identityOf(path: string): string | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false });
  return file && `${file.ino}:${file.birthtimeNs}:${file.mtimeNs}`;
}

async function takeLock(path: string): Promise<void> {
  for (let waited = 0; ; waited += 20) {
    try {
      createLock(path);
      return;
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (waited >= LOCK_TIMEOUT_MS) throw lockedError('packed-refs');
      await delay(20);
    }
  }
}
