import { statfsSync } from 'node:fs';
import { errnoOf, isMissing } from '../../foundation/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Below this, in bytes, nothing is begun that writes objects: what stops in the middle costs more than what is not begun. */
const LEAST_ROOM = 64 * 1024 * 1024;
/** A disk that is smaller than this as a whole is full when a tenth of it is left. */
const SMALL_DISK = 10 * LEAST_ROOM;

/** Bytes that can still be written where `path` is; undefined where the system does not say. */
export function roomAt(path: string): { readonly free: number; readonly total: number } | undefined {
  try {
    const { bavail, blocks, bsize } = statfsSync(path);
    return { free: bavail * bsize, total: blocks * bsize };
  } catch (error) {
    if (isMissing(error) || errnoOf(error) === 'ENOSYS') return undefined;
    throw error;
  }
}

/** Throws Unavailable if less than `needed` bytes would be left above the least room. */
export function expectRoom(path: string, needed = 0): void {
  const room = roomAt(path);
  // A file system without a size of its own, as some over a network are, says 0.
  if (room === undefined || room.total === 0) return;
  const least = room.total < SMALL_DISK ? room.total / 10 : LEAST_ROOM;
  if (room.free >= least + needed) return;
  throw diskFull(path, `only ${Math.floor(room.free / 1024 / 1024)} MiB are left`);
}

/** The error for a write that the disk refused, or undefined if the error says something else. */
export function diskError(error: unknown, path: string): SluiceError | undefined {
  const code = errnoOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') return diskFull(path, code, error);
  return saysDiskFull(error instanceof Error ? error.message : '') ? diskFull(path, 'git said so', error) : undefined;
}

/** True for words of git (LC_ALL=C) that a disk has no room. */
export function saysDiskFull(words: string): boolean {
  return /No space left on device|Disk quota exceeded|File too large/.test(words);
}

export function diskFull(path: string, why: string, cause?: unknown): SluiceError {
  return new SluiceError(
    'Unavailable',
    `the disk of ${path} is full (${why}): nothing was changed. Make room there, then try again`,
    cause === undefined ? {} : { cause },
  );
}
