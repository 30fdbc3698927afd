import { statfsSync } from 'node:fs';
import { errnoOf, isMissing } from '../../foundation/files/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Below this no operation begins that writes objects: one that stops in the middle costs more than one that did not begin. */
const MIN_FREE_BYTES = 64 * 1024 * 1024;
/** A disk smaller than this counts as full when a tenth of it is left. */
const SMALL_DISK_BYTES = 10 * MIN_FREE_BYTES;

/** Bytes that can still be written where `path` is; undefined where the system does not report it. */
export function freeSpaceAt(path: string): { readonly free: number; readonly total: number } | undefined {
  try {
    const { bavail, blocks, bsize } = statfsSync(path);
    return { free: bavail * bsize, total: blocks * bsize };
  } catch (error) {
    if (isMissing(error) || errnoOf(error) === 'ENOSYS') return undefined;
    throw error;
  }
}

/** Throws Unavailable if less than `needed` bytes would be left above the minimum. */
export function requireFreeSpace(path: string, needed = 0): void {
  const room = freeSpaceAt(path);
  // A file system that does not know its size, such as some network file systems, reports 0.
  if (room === undefined || room.total === 0) return;
  const least = room.total < SMALL_DISK_BYTES ? room.total / 10 : MIN_FREE_BYTES;
  if (room.free >= least + needed) return;
  throw diskFull(path, `only ${Math.floor(room.free / 1024 / 1024)} MiB are left`);
}

/** The error for a write that the disk refused, or undefined for another error. */
export function diskError(error: unknown, path: string): SluiceError | undefined {
  const code = errnoOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') return diskFull(path, code, error);
  return isDiskFullMessage(error instanceof Error ? error.message : '')
    ? diskFull(path, 'reported by git', error)
    : undefined;
}

/** True for a message of git (LC_ALL=C) about a full disk. */
export function isDiskFullMessage(words: string): boolean {
  return /No space left on device|Disk quota exceeded|File too large/.test(words);
}

export function diskFull(path: string, why: string, cause?: unknown): SluiceError {
  return new SluiceError(
    'Unavailable',
    `the disk of ${path} is full (${why}): nothing was changed. Free space there, then try again`,
    cause === undefined ? {} : { cause },
  );
}
