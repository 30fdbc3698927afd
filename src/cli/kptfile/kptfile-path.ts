import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

const MAX_BYTES = 16 * 1024 * 1024;

/** The Kptfile that a word on the command line means: a folder's, or the file itself. */
export async function readKptfileAt(place: string): Promise<{ path: string; text: string }> {
  try {
    const isFolder = (await stat(place)).isDirectory();
    const path = isFolder ? join(place, 'Kptfile') : place;
    const stats = await stat(path);
    if (!stats.isFile()) throw new SluiceError('InvalidInput', `${path} is not a file`);
    if (stats.size > MAX_BYTES) {
      throw new SluiceError(
        'InvalidInput',
        `${path} has ${stats.size} bytes; a Kptfile holds conditions and a pipeline, not data`,
      );
    }
    return { path, text: await readFile(path, 'utf8') };
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    const hint = basename(place) === 'Kptfile' ? '' : '; name the folder of a package, or its Kptfile';
    throw new SluiceError('InvalidInput', `cannot read a Kptfile at ${place}: ${messageOf(error)}${hint}`, {
      cause: error,
    });
  }
}
