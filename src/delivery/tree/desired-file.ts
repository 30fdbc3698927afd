import { createHash } from 'node:crypto';

/** A file whose content is not cached: its id suffices to find out whether the branch has it. */
interface UncachedFile {
  readonly oid: string;
}

/** A file that a folder is to contain. */
export type DesiredFile = Uint8Array | UncachedFile;

const blobIds = new WeakMap<Uint8Array, string>();

/** The id of a file in Git, computed once for each cached content. */
export function blobIdOf(file: DesiredFile): string {
  if (!(file instanceof Uint8Array)) return file.oid;
  const known = blobIds.get(file);
  if (known !== undefined) return known;
  const oid = createHash('sha1').update(`blob ${file.length}\0`).update(file).digest('hex');
  blobIds.set(file, oid);
  return oid;
}
