import type { TargetSettings } from '../../../src/delivery/delivery-target.ts';
import type { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import { DesiredTree } from '../../../src/delivery/tree/desired-tree.ts';
import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { sameValue } from '../../../src/resource/object/same-value.ts';
import { followBranch, readBranch } from '../branch/read-branch.ts';
import { WantedMemory } from '../wanted-revisions.ts';

/** Measured: a file of the branch with its path and id, and its share of the folder. */
const BYTES_PER_FILE = 300;
/** Measured: a package with its names, its selected revision, and its state in the desired tree. The rows of the index are not copied. */
const BYTES_PER_PACKAGE = 2000;

/**
 * What is kept of one target between reconciliations, so that a delivery costs what changed. It follows from the branch and the index, and it
 * may be dropped at any time.
 */
export class TargetMemory {
  readonly wanted = new WantedMemory();
  #isChanging = false;
  #branch: { readonly place: string; readonly head: Oid; readonly files: BranchFiles } | undefined;
  #tree: { readonly settings: TargetSettings; readonly files: BranchFiles; readonly tree: DesiredTree } | undefined;

  /** Estimated bytes of what is kept. */
  get bytes(): number {
    return BYTES_PER_FILE * (this.#branch?.files.size ?? 0) + BYTES_PER_PACKAGE * this.wanted.selected.size;
  }

  /** False after a change that failed: what is kept may be half of it. */
  get isUsable(): boolean {
    return !this.#isChanging;
  }

  /** Runs a change of what is kept. */
  async change<Result>(job: () => Promise<Result>): Promise<Result> {
    this.#isChanging = true;
    const result = await job();
    this.#isChanging = false;
    return result;
  }

  /** The files below a directory at a commit. Without a change since the last call nothing is read. `repo` names the repository. */
  async files(git: GitRepository, repo: string, head: Oid | undefined, directory: string): Promise<BranchFiles> {
    const place = JSON.stringify([repo, directory]);
    const known = this.#branch;
    // An error leaves the files in between.
    this.#branch = undefined;
    const isFollowed =
      known !== undefined &&
      head !== undefined &&
      known.place === place &&
      (known.head === head || (await followBranch(git, known.files, known.head, head)));
    const files = isFollowed ? known.files : await readBranch(git, head, directory);
    if (head !== undefined) this.#branch = { place, head, files };
    return files;
  }

  /** Notes an own commit on top of the head. */
  committed(files: BranchFiles, repo: string, head: Oid, edits: ReadonlyMap<string, Uint8Array | null>): void {
    files.apply(edits);
    this.#branch = { place: JSON.stringify([repo, files.directory]), head, files };
  }

  desired(settings: TargetSettings, files: BranchFiles): DesiredTree {
    const known = this.#tree;
    const { pins: _pins, rollbacks: _rollbacks, ...used } = settings;
    if (known?.files === files && sameValue(known.settings, used)) return known.tree;
    const tree = new DesiredTree(used, files);
    this.#tree = { settings: used, files, tree };
    return tree;
  }
}
