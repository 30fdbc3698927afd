import { createHash } from 'node:crypto';
import { compareText, isInside, joinPath } from '../path-rules.ts';
import { type FolderOwner, KUSTOMIZATION, readOwner } from './kustomization.ts';

/** A file in the branch of the target: its blob id, and for a `kustomization.yaml` its content, or the owner that it names. */
export interface PresentFile {
  readonly oid: string;
  readonly data?: Uint8Array;
  readonly owner?: FolderOwner;
}

/** A file whose content is not cached: its id suffices to find out whether the branch has it. */
export interface UncachedFile {
  readonly oid: string;
}

/** A file that a folder is to contain. */
export type DesiredFile = Uint8Array | UncachedFile;

/** The files of a target's branch, and the folders that this target wrote. */
export class BranchView {
  readonly #present: ReadonlyMap<string, PresentFile>;
  readonly #sorted: readonly string[];
  readonly #owners: ReadonlyMap<string, FolderOwner>;
  readonly #directory: string;
  readonly #target: string;
  readonly #unreadable: ReadonlySet<string>;

  constructor(
    present: ReadonlyMap<string, PresentFile>,
    directory: string,
    target: string,
    unreadable: ReadonlySet<string>,
  ) {
    this.#present = present;
    this.#directory = directory;
    this.#target = target;
    this.#unreadable = unreadable;
    this.#sorted = [...present.keys()].sort(compareText);
    this.#owners = ownersIn(present, directory);
  }

  /** The folders that this target wrote and may change now, in order. */
  ownFolders(): [string, FolderOwner][] {
    return [...this.#owners].filter(([, owner]) => this.#isFree(owner));
  }

  /**
   * Adds the edits after which a folder contains exactly these files, apart from the spared folders inside it: `changed` if
   * there are any, `missing` if the content of a required file is not cached.
   */
  replace(
    folder: string,
    files: ReadonlyMap<string, DesiredFile>,
    edits: Map<string, Uint8Array | null>,
    spared: readonly string[] = [],
  ): 'same' | 'changed' | 'missing' {
    const before = edits.size;
    let isMissing = false;
    for (const path of this.#below(folder)) {
      const isSpared = spared.some((other) => isInside(path, other));
      if (!isSpared && !files.has(path.slice(folder.length + 1))) edits.set(path, null);
    }
    for (const [path, data] of files) {
      const full = joinPath(folder, path);
      if (this.#present.get(full)?.oid === blobIdOf(data)) continue;
      if (data instanceof Uint8Array) edits.set(full, data);
      else isMissing = true;
    }
    if (isMissing) return 'missing';
    return edits.size > before ? 'changed' : 'same';
  }

  /**
   * Returns why this target must not write a folder: the folder contains, or is inside of, files of another owner or of a
   * folder that must stay; undefined if it may be written.
   */
  foreignReason(folder: string, wanted: { readonly repository: string; readonly package: string }): string | undefined {
    for (let path = folder; path.length > this.#directory.length; path = parentOf(path)) {
      if (this.#present.has(path)) return `${path} is a file`;
      const owner = this.#owners.get(path);
      const isSame = path === folder && owner?.target === this.#target && owner.repository === wanted.repository;
      if (owner !== undefined && !isSame && !this.#isFree(owner)) return this.#describeOwner(path, owner);
    }
    for (const path of this.#below(folder)) {
      const found = this.#ownerAround(path);
      if (found === undefined) return `${path} was not written by Sluice`;
      const [inner, owner] = found;
      if (inner !== folder && !this.#isFree(owner)) return this.#describeOwner(inner, owner);
    }
    return undefined;
  }

  #isFree(owner: FolderOwner): boolean {
    return owner.target === this.#target && !this.#unreadable.has(owner.repository);
  }

  #describeOwner(folder: string, owner: FolderOwner): string {
    const name = `${folder} was written for package ${owner.repository}/${owner.package}`;
    if (owner.target !== this.#target) return `${name} of target ${owner.target}`;
    return `${name}, whose repository cannot be read at present`;
  }

  /** The innermost folder of Sluice that contains a file. */
  #ownerAround(path: string): [string, FolderOwner] | undefined {
    for (let folder = parentOf(path); folder.length > this.#directory.length; folder = parentOf(folder)) {
      const owner = this.#owners.get(folder);
      if (owner !== undefined) return [folder, owner];
    }
    return undefined;
  }

  /** The files below a folder, in order. */
  *#below(folder: string): Generator<string> {
    const prefix = `${folder}/`;
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < prefix) low = middle + 1;
      else high = middle;
    }
    for (let path = this.#sorted[low]; path?.startsWith(prefix); path = this.#sorted[++low]) yield path;
  }
}

/** The folders below a target's directory that a target wrote, by path in order. */
export function ownersIn(present: ReadonlyMap<string, PresentFile>, directory: string): Map<string, FolderOwner> {
  const owners = new Map<string, FolderOwner>();
  for (const [path, file] of present) {
    if (!path.endsWith(`/${KUSTOMIZATION}`)) continue;
    const folder = parentOf(path);
    const owner = file.owner ?? (file.data && readOwner(file.data));
    // A mark must match its place: a folder that a user copied is not Sluice's.
    if (owner !== undefined && folder === joinPath(directory, owner.package)) owners.set(folder, owner);
  }
  return new Map([...owners].sort(([a], [b]) => compareText(a, b)));
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

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
