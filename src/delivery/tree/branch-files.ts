import { joinPath } from '../path-rules.ts';
import { blobIdOf } from './desired-file.ts';
import { type FolderOwner, mayNameOwner, OWNER_FILES, readOwner } from './kustomization.ts';
import { PathTree } from './path-tree.ts';

/** A file in the branch of the target: its blob id, and for a build file its content, or the owner that it names. */
export interface PresentFile {
  readonly oid: string;
  /** Of an entry that is no plain file: `100755`, `120000` (symbolic link) or `160000` (submodule). Sluice writes only plain files. */
  readonly mode?: string;
  readonly data?: Uint8Array;
  readonly owner?: FolderOwner;
}

/** Called after a change of a file. `owned` is the folder of the file if its owner changed with it. */
export type FileListener = (path: string, owned: string | undefined) => void;

/**
 * The files below the directory of a target, by path from the root of the repository, and the folders that targets wrote. A change costs
 * the depth of its path, so a caller can follow a branch without reading it again.
 */
export class BranchFiles {
  /** Without slashes at its ends; the root is empty. */
  readonly directory: string;
  readonly #files = new PathTree<PresentFile>();
  readonly #owners = new Map<string, FolderOwner>();
  #listener: FileListener = () => undefined;

  constructor(directory: string) {
    this.directory = directory;
  }

  static of(directory: string, present: ReadonlyMap<string, PresentFile>): BranchFiles {
    const files = new BranchFiles(directory);
    for (const [path, file] of present) files.set(path, file);
    return files;
  }

  get size(): number {
    return this.#files.size;
  }

  /** The folders that targets wrote, in no order. */
  get owners(): ReadonlyMap<string, FolderOwner> {
    return this.#owners;
  }

  get(path: string): PresentFile | undefined {
    return this.#files.get(path);
  }

  /** The paths of the files below a folder, in an order that depends on them alone. */
  *below(folder: string): Generator<string> {
    for (const [path] of this.#files.below(folder)) yield path;
  }

  /** Calls this listener, and no earlier one, for each change from now on. */
  onChange(listener: FileListener): void {
    this.#listener = listener;
  }

  /** Follows a commit of these edits. */
  apply(edits: ReadonlyMap<string, Uint8Array | null>): void {
    for (const [path, data] of edits) {
      const owner = data !== null && mayNameOwner(path) ? readOwner(data) : undefined;
      if (data === null) this.delete(path);
      else this.set(path, owner === undefined ? { oid: blobIdOf(data) } : { oid: blobIdOf(data), owner });
    }
  }

  set(path: string, file: PresentFile): void {
    this.#files.set(path, file);
    this.#changed(path);
  }

  delete(path: string): void {
    this.#files.delete(path);
    this.#changed(path);
  }

  #changed(path: string): void {
    const folder = mayNameOwner(path) ? parentOf(path) : undefined;
    const isOwned = folder !== undefined && this.#followOwner(folder);
    this.#listener(path, isOwned ? folder : undefined);
  }

  /** Returns true if the owner of the folder changed. */
  #followOwner(folder: string): boolean {
    const before = this.#owners.get(folder);
    const owner = this.#ownerIn(folder);
    if (owner === undefined) return this.#owners.delete(folder);
    this.#owners.set(folder, owner);
    return owner !== before;
  }

  #ownerIn(folder: string): FolderOwner | undefined {
    for (const name of OWNER_FILES) {
      const file = this.#files.get(`${folder}/${name}`);
      const owner = file?.owner ?? (file?.data && readOwner(file.data));
      // A mark must match its place: a folder that a user copied is not Sluice's.
      if (owner !== undefined && folder === joinPath(this.directory, owner.package)) return owner;
    }
    return undefined;
  }
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}
