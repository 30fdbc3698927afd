import type { BranchFiles } from '../../src/delivery/tree/branch-files.ts';
import { blobIdOf } from '../../src/delivery/tree/desired-file.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import type { ComparedFile, ComparedFiles } from '../../src/package/model/diff/compared-files.ts';

/** The files that edits of a target's branch change: as they are in the branch, and as they are after the edits. */
export interface EditedFiles {
  readonly present: ComparedFiles;
  readonly edited: ComparedFiles;
}

/** `present` is the branch that the edits are for; its contents are read only when a comparison needs them. */
export async function editedFiles(
  git: GitRepository,
  present: BranchFiles,
  edits: ReadonlyMap<string, Uint8Array | null>,
): Promise<EditedFiles> {
  const before = [...edits.keys()].flatMap((path) => {
    const file = present.get(path);
    // The commit of a submodule is in another repository.
    return file === undefined || file.mode === '160000' ? [] : [{ path, oid: file.oid }];
  });
  const stats = await git.statObjects(before.map(({ oid }) => oid));
  const files = new Map(before.map(({ path, oid }, at) => [path, { id: oid, bytes: stats[at]?.size ?? 0 }] as const));
  const after = new Map<string, ComparedFile>();
  const contents = new Map<string, Buffer>();
  for (const [path, data] of edits) {
    if (data === null) continue;
    const id = blobIdOf(data);
    after.set(path, { id, bytes: data.length });
    contents.set(id, Buffer.from(data.buffer, data.byteOffset, data.length));
  }
  return {
    present: { files, read: (ids) => readBlobs(git, ids) },
    edited: { files: after, read: async (ids) => ids.flatMap((id) => contents.get(id) ?? []) },
  };
}

async function readBlobs(git: GitRepository, ids: readonly string[]): Promise<Buffer[]> {
  const blobs: Buffer[] = [];
  for (const [at, object] of (await git.readObjects(ids)).entries()) {
    // Throws with the reason.
    if (object === undefined) await git.expectObject(ids[at] ?? '');
    else blobs.push(object.data);
  }
  return blobs;
}
