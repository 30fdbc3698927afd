import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { isMissing, readFolder, removeFile } from '../file-system.ts';
import { runGit } from './git-process.ts';

const DAY = 24 * 60 * 60 * 1000;

/**
 * Packs objects in a geometric row of packs: work stays in proportion to what is new. Objects that nothing refers to are packed too
 * and never removed, so that no writer that is about to refer to one loses it.
 */
export async function packObjects(gitDir: string, clock: Clock, timeout: number): Promise<void> {
  const { code, stderr } = await runGit({
    gitDir,
    settings: ['pack.threads=1', 'pack.windowMemory=64m', 'repack.writeBitmaps=false'],
    arguments: ['repack', '--quiet', '-d', '--geometric=2'],
    clock,
    timeout,
  });
  if (code !== 0) throw new SluiceError('Internal', `git repack failed: ${stderr.trim().slice(0, 500)}`);
}

/** Removes temporary files that writers left behind when they were killed, once they are a day old. */
export async function sweepTemporaryFiles(gitDir: string, clock: Clock): Promise<void> {
  const objects = join(gitDir, 'objects');
  for (const { name: folder } of await readFolder(objects)) {
    if (!/^(?:[0-9a-f]{2}|pack)$/.test(folder)) continue;
    for (const { name } of await readFolder(join(objects, folder))) {
      if (!name.startsWith('tmp_') && !name.startsWith('.tmp-')) continue;
      const path = join(objects, folder, name);
      const age = clock.now() - (await modified(path, clock));
      if (age > DAY) await removeFile(path);
    }
  }
}

/** Milliseconds since the epoch; now for a file that was renamed or removed meanwhile. */
async function modified(path: string, clock: Clock): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (isMissing(error)) return clock.now();
    throw error;
  }
}
