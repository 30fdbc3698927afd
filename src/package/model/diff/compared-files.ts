import { createHash } from 'node:crypto';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { isOid } from '../../../git/objects/object-id.ts';

/** A file of a package whose content is not in memory. */
export interface ComparedFile {
  /** Files with the same id have the same content. */
  readonly id: string;
  readonly bytes: number;
  /** Mode in Git of an entry that is no plain file. Modes are compared only where they are given. */
  readonly mode?: string | undefined;
}

/** Mode in Git of a plain file. */
export const PLAIN_MODE = '100644';

/** The files of one version of a package, for a comparison that reads only some of them. */
export interface ComparedFiles {
  /** By path. */
  readonly files: ReadonlyMap<string, ComparedFile>;
  /** The contents, in the order of the ids. */
  read(ids: readonly string[]): Promise<readonly Buffer[]>;
}

export const NO_FILES: ComparedFiles = { files: new Map(), read: async () => [] };

/** Files whose contents are in memory already. */
export function filesInMemory(contents: ReadonlyMap<string, Buffer>): ComparedFiles {
  const files = new Map<string, ComparedFile>();
  const byId = new Map<string, Buffer>();
  for (const [path, data] of contents) {
    const id = createHash('sha256').update(data).digest('hex');
    files.set(path, { id, bytes: data.length });
    byId.set(id, data);
  }
  return { files, read: async (ids) => ids.flatMap((id) => byId.get(id) ?? []) };
}

/** The regular files of the package at `<commit>:<path>` or a tree. Throws NotFound, and LimitExceeded for too many files. */
export async function filesInGit(git: GitRepository, specification: string, maxFiles: number): Promise<ComparedFiles> {
  if ((await git.readTree(specification)) === undefined) {
    // A tree that is named by its id was there once.
    if (isOid(specification)) await git.expectObject(specification);
    throw new SluiceError('NotFound', `there is no package folder at ${specification}`);
  }
  const listed = await git.listFiles(specification, maxFiles);
  const regular = listed.filter(({ mode }) => mode === '100644' || mode === '100755');
  const stats = await git.statObjects(regular.map(({ oid }) => oid));
  // The size of a missing object matters only if it is read, which then throws.
  const files = new Map(regular.map(({ path, oid }, at) => [path, { id: oid, bytes: stats[at]?.size ?? 0 }]));
  return { files, read: (oids) => readBlobs(git, oids) };
}

/** Throws DamageError or Corrupt for an object that is missing. */
async function readBlobs(git: GitRepository, oids: readonly Oid[]): Promise<Buffer[]> {
  const objects = await git.readObjects(oids);
  const blobs: Buffer[] = [];
  for (const [at, oid] of oids.entries()) {
    const object = objects[at];
    if (object === undefined) {
      await git.expectObject(oid);
      throw new SluiceError('Corrupt', `object ${oid} is missing`);
    }
    blobs.push(object.data);
  }
  return blobs;
}
