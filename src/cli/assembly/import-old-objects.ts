import { readdir, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { readManifests } from '../../resource/manifests.ts';
import { keyOf } from '../../resource/object.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import { syncPath } from '../../resource/sqlite/back-up.ts';
import type { ObjectSet } from './object-set.ts';

const IMPORT: RequestContext = { actor: { name: 'sluice' }, face: 'cli' };

/**
 * Takes objects over from the files in which earlier versions kept them, all or none, and puts the folder aside. An import that was
 * interrupted goes on. Throws InvalidInput with file and line if a file cannot be read; nothing is lost then.
 */
export async function importOldObjects(folder: string, objects: ObjectSet): Promise<void> {
  const paths = await filesBelow(folder);
  if (paths === undefined) return;
  const files = await Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, 'utf8') })));
  const storages = objects.storages();
  const manifests = readManifests(
    files,
    storages.map((storage) => storage.kind),
  );
  await Promise.all(
    manifests.map(async ({ kind, object }) => {
      const storage = storages.find((candidate) => candidate.kind === kind);
      const { deletionTimestamp: _gone, resourceVersion: _version, ...metadata } = object.metadata;
      try {
        await storage?.create(IMPORT, { ...object, metadata });
      } catch (error) {
        // There already, from an import that was interrupted.
        if (!isSluiceError(error, 'AlreadyExists')) throw error;
      }
      if (object.metadata.deletionTimestamp !== undefined) await storage?.delete(IMPORT, keyOf(object));
    }),
  );
  await rename(folder, `${folder}.imported`);
  // Or a power cut would bring back what is deleted from now on.
  syncPath(dirname(folder));
}

/** Paths of all object files; undefined if there is no folder. */
async function filesBelow(folder: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.yaml') && !entry.name.startsWith('.'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
