import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = '/dev/shm';
/** Bytes. A whole run of the quick suite has some hundred megabytes at a time. */
const MIN_FREE = 4 * 1024 ** 3;

/** A folder in memory for the repositories of tests, where the machine has one with enough room, in which hooks can be executed. */
export function memoryFolder(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(FOLDER);
    if (bavail * bsize < MIN_FREE) return undefined;
    const probe = mkdtempSync(join(FOLDER, 'sluice-probe-'));
    try {
      const hook = join(probe, 'hook');
      writeFileSync(hook, '#!/bin/sh\n', { mode: 0o755 });
      execFileSync(hook);
    } finally {
      rmSync(probe, { recursive: true, force: true });
    }
    return FOLDER;
  } catch {
    // There is none, or programs in it are not executed: the suite is only slower.
    return undefined;
  }
}
