import type { BranchFiles } from '../../src/delivery/tree/branch-files.ts';
import { blobIdOf } from '../../src/delivery/tree/desired-file.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import type { ComparedFile, ComparedFiles } from '../../src/package/model/diff/compared-files.ts';

/** Mode in Git. */
const SUBMODULE = '160000';

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
    return file === undefined ? [] : [{ path, ...file }];
  });
  // Their commits are in other repositories.
  const submodules = new Map(
    before.flatMap(({ oid, mode }) => (mode === SUBMODULE ? [[oid, submoduleText(oid)] as const] : [])),
  );
  const stats = await git.statObjects(before.map(({ oid }) => oid));
  const files = new Map(
    before.map(({ path, oid, mode }, at) => {
      const bytes = submodules.get(oid)?.length ?? stats[at]?.size ?? 0;
      return [path, { id: oid, bytes, mode }] as const;
    }),
  );
  const after = new Map<string, ComparedFile>();
  const contents = new Map<string, Buffer>();
  for (const [path, data] of edits) {
    if (data === null) continue;
    const id = blobIdOf(data);
    after.set(path, { id, bytes: data.length });
    contents.set(id, Buffer.from(data.buffer, data.byteOffset, data.length));
  }
  return {
    present: { files, read: (ids) => readBlobs(git, ids, submodules) },
    edited: { files: after, read: async (ids) => ids.flatMap((id) => contents.get(id) ?? []) },
  };
}

/** What Git shows as the content of a submodule. */
function submoduleText(oid: string): Buffer {
  return Buffer.from(`Subproject commit ${oid}\n`);
}

async function readBlobs(
  git: GitRepository,
  ids: readonly string[],
  submodules: ReadonlyMap<string, Buffer>,
): Promise<Buffer[]> {
  const blobs = ids.filter((id) => !submodules.has(id));
  const contents = new Map(submodules);
  for (const [at, object] of (await git.readObjects(blobs)).entries()) {
    const id = blobs[at] ?? '';
    // Throws with the reason.
    if (object === undefined) await git.expectObject(id);
    else contents.set(id, object.data);
  }
  return ids.flatMap((id) => contents.get(id) ?? []);
}
