import { readdir, readFile } from 'node:fs/promises';

/** More than enough to catch up with children that start children. */
const ROUNDS = 20;

/**
 * Kills every process that has `variable` (`NAME=value`) in the environment that it was started with, also where it left the process
 * group of its parent. Finds none on systems without /proc, none that were given another environment on purpose, and none of
 * other users.
 */
export async function endStrays(variable: string): Promise<void> {
  const entry = Buffer.from(`\0${variable}\0`);
  for (let round = 0; round < ROUNDS; round += 1) {
    const found = await processesWith(entry);
    if (found.length === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // ESRCH: it has ended by itself.
      }
    }
  }
}

async function processesWith(entry: Buffer): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Unreadable are those of other users and those that have just ended; a process that was killed shows an empty one.
      const environment = await readFile(`/proc/${pid}/environ`).catch(() => Buffer.alloc(0));
      return Buffer.concat([Buffer.from('\0'), environment]).includes(entry) ? Number(pid) : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}
