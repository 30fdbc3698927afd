import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, readFolder } from '../../foundation/files/file-system.ts';
import type { DiskUse } from '../git-repository.ts';

/** The space that the smallest file uses on most file systems. */
const BLOCK_BYTES = 4096;

/** Counts without opening a file. Loose objects are counted one folder at a time: with maintenance they are few. */
export async function diskUse(gitDir: string): Promise<DiskUse> {
  const objects = join(gitDir, 'objects');
  let looseObjects = 0;
  let packs = 0;
  let bytes = 0;
  for (const { name: folder } of await readFolder(objects)) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    for (const { name } of await readFolder(join(objects, folder))) {
      const size = statSync(join(objects, folder, name), { throwIfNoEntry: false })?.size;
      if (size === undefined) continue;
      looseObjects += 1;
      bytes += Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
    }
  }
  for (const { name } of await readFolder(join(objects, 'pack'))) {
    if (name.endsWith('.pack')) packs += 1;
    bytes += (await statOf(join(objects, 'pack', name)))?.size ?? 0;
  }
  return { looseObjects, packs, bytes };
}

/** Undefined for a file that was removed, as in a repository in use at any time. */
export async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
