import { access, mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { ProcessLock } from '../../src/foundation/files/process-lock.ts';

/** Compiling a large program takes some minutes, and up to an hour on a busy machine. */
const MAX_BUILD_MS = 60 * 60_000;

/** A folder for what is built once for each user of this machine, and not with every installation. */
export function userCacheFolder(name: string): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), name);
}

/**
 * Builds a file unless it exists. `build` writes it under another name, so that a file under the final name is complete. A process that needs
 * the same file meanwhile waits for it.
 */
export async function buildOnce(path: string, build: (unfinished: string) => Promise<void>): Promise<void> {
  if (await exists(path)) return;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await ProcessLock.run(`${path}.lock`, { timeoutMs: MAX_BUILD_MS }, async () => {
    if (await exists(path)) return;
    const unfinished = `${path}.${process.pid}`;
    try {
      await build(unfinished);
      await rename(unfinished, path);
    } finally {
      await rm(unfinished, { force: true });
    }
  });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
