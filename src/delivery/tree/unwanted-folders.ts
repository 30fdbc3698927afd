import type { TargetSettings } from '../delivery-target.ts';
import { compareText } from '../path-rules.ts';
import { packageKey } from '../selection/select-revisions.ts';
import type { BranchView } from './branch-view.ts';
import { type FolderOwner, KUSTOMIZATION, writeKustomization } from './kustomization.ts';
import { PathTree } from './path-tree.ts';
import type { RemovedPackage } from './trailers.ts';

interface UnwantedFolder {
  readonly folder: string;
  readonly owner: FolderOwner;
}

/** The folders that a target wrote and wants no more. They are emptied or removed once, and looked at again when they may have changed. */
export class UnwantedFolders {
  readonly #all = new PathTree<UnwantedFolder>();
  readonly #unsettled = new Set<UnwantedFolder>();

  /** Notes whether a folder is unwanted. `owner` is undefined for a folder that is wanted, or that the target must not change. */
  set(folder: string, owner: FolderOwner | undefined): void {
    const known = this.#all.get(folder);
    if (known?.owner === owner) return;
    if (known !== undefined) this.#unsettled.delete(known);
    if (owner === undefined) this.#all.delete(folder);
    else this.#all.set(folder, { folder, owner });
    // Itself too: it is neither settled.
    this.touch(folder);
  }

  /** Notes that a path, or something around or below it, changed. */
  touch(path: string): void {
    if (this.#all.size === 0) return;
    for (const one of this.#all.above(path)) this.#unsettled.add(one);
    for (const [, one] of this.#all.below(path)) this.#unsettled.add(one);
  }

  /**
   * Adds the edits that empty or remove the folders. `wanted` has the wanted folders by their paths. The folders that are as they are to
   * be are not looked at again before a `touch`.
   */
  *remove(
    target: TargetSettings,
    wanted: PathTree<unknown>,
    branch: BranchView,
    edits: Map<string, Uint8Array | null>,
  ): Generator<void, { readonly removed: RemovedPackage[]; readonly folders: string[] }> {
    const removed: RemovedPackage[] = [];
    const folders: string[] = [];
    for (const one of [...this.#unsettled].sort((a, b) => compareText(a.folder, b.folder))) {
      yield;
      const { folder, owner } = one;
      // A folder inside one that is written or removed is handled with that one.
      const isInOther = !wanted.above(folder).next().done || [...this.#all.above(folder)].length > 1;
      if (isInOther || this.#empty(one, target, wanted, branch, edits) === 'same') {
        this.#unsettled.delete(one);
        continue;
      }
      removed.push({ repository: owner.repository, package: owner.package });
      folders.push(folder);
    }
    return { removed: removed.sort((a, b) => compareText(packageKey(a), packageKey(b))), folders };
  }

  #empty(
    { folder, owner }: UnwantedFolder,
    target: TargetSettings,
    wanted: PathTree<unknown>,
    branch: BranchView,
    edits: Map<string, Uint8Array | null>,
  ) {
    const spared = Array.from(wanted.below(folder), ([path]) => path);
    const files = new Map<string, Uint8Array>();
    // An empty list above folders in use would hide them from a scan from the top.
    if (target.onRemoval === 'empty' && spared.length === 0) files.set(KUSTOMIZATION, writeKustomization(owner, []));
    return branch.replace(folder, files, edits, spared);
  }
}
