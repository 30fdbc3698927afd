import { join } from 'node:path';
import { readFileIfPresent, readFolder } from '../../../foundation/files/file-system.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { diskUse } from '../../disk/disk-use.ts';

const MIB = 1024 ** 2;
/** Packs are in memory as a whole. 10,000 packages take 131 MB in one pack, and reading them takes a minute. */
const MAX_BYTES = 512 * MIB;
/** Above these, each read takes a multiple of its time in a repository that maintenance packs. */
const MANY_BYTES = 64 * MIB;
const MANY_PACKS = 200;
const MANY_LOOSE_OBJECTS = 50_000;

/**
 * Throws Unavailable for a repository that needs git: one that borrows objects, lacks objects, or is too large. Not Unsupported, for
 * which a mirror would be put aside and fetched again. Returns what makes it slow, or undefined.
 */
export async function checkUsable(gitDir: string): Promise<string | undefined> {
  const needsGit = (cause: string) =>
    new SluiceError(
      'Unavailable',
      `the repository ${gitDir} cannot be opened without git: ${cause}. Install git 2.39 or later and put it in PATH`,
    );
  const alternates = await readFileIfPresent(join(gitDir, 'objects/info/alternates'));
  if (alternates !== undefined && alternates.toString('utf8').trim() !== '')
    throw needsGit('it borrows objects from another repository');
  const files = await readFolder(join(gitDir, 'objects/pack'));
  if (files.some(({ name }) => name.endsWith('.promisor')))
    throw needsGit('it is a partial clone: some of its objects are only in the remote');
  const { bytes, packs, looseObjects } = await diskUse(gitDir);
  const size = `it has ${Math.ceil(bytes / MIB)} MiB in ${packs} packs and ${looseObjects} loose objects`;
  if (bytes > MAX_BYTES) throw needsGit(`${size}, and the maximum is ${MAX_BYTES / MIB} MiB`);
  if (bytes <= MANY_BYTES && packs <= MANY_PACKS && looseObjects <= MANY_LOOSE_OBJECTS) return undefined;
  return `the repository ${gitDir} is slow without git, which would pack it: ${size}`;
}
