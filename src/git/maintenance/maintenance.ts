import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readFolder } from '../../foundation/files/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { isDiskFullMessage, requireFreeSpace } from '../disk/disk-room.ts';
import { diskUse, statOf } from '../disk/disk-use.ts';
import type { ObservedFiles } from '../disk/observed-files.ts';
import { runGit } from '../process/git-process.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Packs objects in a geometric series of packs: the cost is proportional to the number of new objects. Objects that nothing refers to
 * are packed too and never removed, since a writer may be about to refer to one.
 */
export async function packObjects(
  gitDir: string,
  clock: Clock,
  timeout: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  // Repacked objects temporarily exist twice.
  requireFreeSpace(gitDir, (await diskUse(gitDir)).bytes);
  const { code, stderr } = await runGit({
    gitDir,
    settings: ['pack.threads=1', 'pack.windowMemory=64m', 'repack.writeBitmaps=false'],
    arguments: ['repack', '--quiet', '-d', '--geometric=2'],
    clock,
    timeout,
    signal,
  });
  if (code === 0) return;
  const output = stderr.trim().slice(0, 500);
  throw new SluiceError(isDiskFullMessage(output) ? 'Unavailable' : 'Internal', `git repack failed: ${output}`);
}

/**
 * Removes temporary files, and folders of incoming packs, that killed writers left: those that are a day old by the clock and have not
 * been written to for `pause` milliseconds of this process's running time.
 */
export async function removeTemporaryFiles(
  gitDir: string,
  clock: Clock,
  observed: ObservedFiles,
  pause: number,
): Promise<void> {
  const objects = join(gitDir, 'objects');
  const candidates: string[] = [];
  for (const { name: folder } of await readFolder(objects)) {
    if (folder.startsWith('tmp_objdir-')) candidates.push(join(objects, folder));
    if (!/^(?:[0-9a-f]{2}|pack)$/.test(folder)) continue;
    for (const { name } of await readFolder(join(objects, folder)))
      if (name.startsWith('tmp_') || name.startsWith('.tmp-')) candidates.push(join(objects, folder, name));
  }
  for (const path of candidates) {
    // Files in a folder may change without a change of the folder itself.
    const paths = [path, ...(await readFolder(path)).map(({ name }) => join(path, name))];
    const isLeft = await Promise.all(paths.map((one) => isAbandoned(one, clock, observed, pause)));
    if (!isLeft.every(Boolean)) continue;
    await rm(path, { recursive: true, force: true });
    for (const one of paths) observed.forget(one);
  }
}

async function isAbandoned(path: string, clock: Clock, observed: ObservedFiles, pause: number): Promise<boolean> {
  const seen = (await observed.age(path)) ?? 0;
  const modified = (await statOf(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
  return seen > 0 && seen >= pause && clock.now() - modified >= DAY_MS;
}

/** True if the owner of a repository has disabled maintenance: `git config gc.auto 0`. */
export async function isMaintenanceDisabled(gitDir: string, clock: Clock, timeout: number): Promise<boolean> {
  const commandArguments = ['config', '--file', join(gitDir, 'config'), '--get', 'gc.auto'];
  const { stdout } = await runGit({ arguments: commandArguments, clock, timeout });
  return stdout.toString('latin1').trim() === '0';
}
