import { join } from 'node:path';
import { removeFile } from '../../foundation/files/file-system.ts';
import { RefConflictError } from '../errors.ts';
import type { Ref } from '../git-repository.ts';
import type { ObjectSource } from '../objects/object-source.ts';
import { peelTags } from '../objects/peel-tags.ts';
import { withPackedRefs } from '../refs/packed-refs-file.ts';
import type { RefFiles } from '../refs/ref-files.ts';
import { lockRef, removeEmptyParents, unlockRef } from '../refs/ref-lock.ts';

/**
 * Moves loose refs outside `refs/heads/` into `packed-refs`, as `git pack-refs` does it (which in Git before 2.42 cannot leave refs
 * out). Branches stay loose: deleting a packed ref rewrites the whole file, and drafts are created and deleted often.
 */
export async function packRefs(refFiles: RefFiles, source: ObjectSource): Promise<void> {
  const packed = await withPackedRefs(refFiles, true, async (file) => {
    const loose = (await refFiles.listLoose('refs/')).filter(({ name }) => !name.startsWith('refs/heads/'));
    if (loose.length === 0) return loose;
    const values = new Map(loose.map(({ name, oid }) => [name, oid]));
    await file.replace(file.refs.with(values, await peelTags(source, values)));
    return loose;
  });
  for (const ref of packed) await removePacked(refFiles, ref);
}

/** Removes the loose file of a packed ref, unless another writer changed or locked it since. */
async function removePacked(refFiles: RefFiles, { name, oid }: Ref): Promise<void> {
  const { gitDir } = refFiles;
  try {
    lockRef(gitDir, name);
  } catch (error) {
    // If another writer holds the ref, the loose file stays: it overrides the packed line, so that this is correct.
    if (error instanceof RefConflictError) return;
    throw error;
  }
  try {
    if (refFiles.readLoose(name) === oid) await removeFile(join(gitDir, name));
  } finally {
    unlockRef(gitDir, name);
  }
  removeEmptyParents(gitDir, [name]);
}
