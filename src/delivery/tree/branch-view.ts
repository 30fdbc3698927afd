import { isInside, joinPath } from '../path-rules.ts';
import { type BranchFiles, parentOf } from './branch-files.ts';
import { blobIdOf, type DesiredFile } from './desired-file.ts';
import type { FolderOwner } from './kustomization.ts';

/** Why a target must not write a folder. */
interface ForeignReason {
  readonly why: string;
  /** The target that wrote it. */
  readonly otherTarget?: string;
}

/** The branch of a target as this target sees it: which folders it may change, and how. */
export class BranchView {
  readonly #files: BranchFiles;
  readonly #target: string;
  readonly #unreadable: ReadonlySet<string>;

  constructor(files: BranchFiles, target: string, unreadable: ReadonlySet<string>) {
    this.#files = files;
    this.#target = target;
    this.#unreadable = unreadable;
  }

  /** The owner of a folder that this target wrote and may change now. */
  ownFolder(folder: string): FolderOwner | undefined {
    const owner = this.#files.owners.get(folder);
    return owner !== undefined && this.#isFree(owner) ? owner : undefined;
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
    let isChanged = false;
    let isMissing = false;
    for (const path of this.#files.below(folder)) {
      const isSpared = spared.some((other) => isInside(path, other));
      if (isSpared || files.has(path.slice(folder.length + 1))) continue;
      edits.set(path, null);
      isChanged = true;
    }
    for (const [path, data] of files) {
      const full = joinPath(folder, path);
      const present = this.#files.get(full);
      // Engines compare trees, in which the mode of an entry counts.
      if (present?.oid === blobIdOf(data) && present.mode === undefined) continue;
      if (data instanceof Uint8Array) edits.set(full, data);
      else isMissing = true;
      isChanged = true;
    }
    if (isMissing) return 'missing';
    return isChanged ? 'changed' : 'same';
  }

  /**
   * Returns why this target must not write a folder: the folder contains, or is inside of, files of another owner or of a
   * folder that must stay; undefined if it may be written.
   */
  foreignReason(
    folder: string,
    wanted: { readonly repository: string; readonly package: string },
  ): ForeignReason | undefined {
    const { directory, owners } = this.#files;
    for (let path = folder; path.length > directory.length; path = parentOf(path)) {
      if (this.#files.get(path) !== undefined) return { why: `${path} is a file` };
      const owner = owners.get(path);
      const isSame = path === folder && owner?.target === this.#target && owner.repository === wanted.repository;
      if (owner !== undefined && !isSame && !this.#isFree(owner)) return this.#describeOwner(path, owner);
    }
    for (const path of this.#files.below(folder)) {
      const found = this.#ownerAround(path);
      if (found === undefined) return { why: `${path} was not written by Sluice` };
      const [inner, owner] = found;
      if (inner !== folder && !this.#isFree(owner)) return this.#describeOwner(inner, owner);
    }
    return undefined;
  }

  #isFree(owner: FolderOwner): boolean {
    return owner.target === this.#target && !this.#unreadable.has(owner.repository);
  }

  #describeOwner(folder: string, owner: FolderOwner): ForeignReason {
    const name = `${folder} was written for package ${owner.repository}/${owner.package}`;
    if (owner.target !== this.#target) return { why: `${name} of target ${owner.target}`, otherTarget: owner.target };
    return { why: `${name}, whose repository cannot be read at present` };
  }

  /** The innermost folder of Sluice that contains a file. */
  #ownerAround(path: string): [string, FolderOwner] | undefined {
    const { directory, owners } = this.#files;
    for (let folder = parentOf(path); folder.length > directory.length; folder = parentOf(folder)) {
      const owner = owners.get(folder);
      if (owner !== undefined) return [folder, owner];
    }
    return undefined;
  }
}
