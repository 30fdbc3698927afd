import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import { joinPath } from '../../src/delivery/path-rules.ts';
import { packageKey } from '../../src/delivery/selection/select-revisions.ts';
import { type BranchFiles, parentOf } from '../../src/delivery/tree/branch-files.ts';
import { KUSTOMIZATION } from '../../src/delivery/tree/kustomization.ts';

export interface UnknownPackagesInput {
  /** The name of the target, as folders have it. */
  readonly target: string;
  /** The packages that are recorded as delivered. */
  readonly known: readonly DeliveredPackage[];
  /** Of the branch, with the edits of the present delivery. */
  readonly files: BranchFiles;
  /** The repositories whose packages are known. */
  readonly readable: ReadonlySet<string>;
  /** Keys of the packages that the target delivers. */
  readonly delivered: ReadonlySet<string>;
}

/**
 * The packages of repositories that are not registered, not ready or not readable. Their folders stay in the branch, so engines go on
 * deploying them: they count as delivered as they are recorded, until their folders are gone. A folder that no longer names the recorded
 * revision, or of which nothing is recorded, has the mark of a folder that another writer changed.
 */
export function unknownPackages({
  target,
  known,
  files,
  readable,
  delivered,
}: UnknownPackagesInput): readonly DeliveredPackage[] {
  const found: DeliveredPackage[] = [];
  const recorded = new Set(known.map(packageKey));
  for (const one of known) {
    if (readable.has(one.repository)) continue;
    const folder = joinPath(files.directory, one.package);
    const owner = files.owners.get(folder);
    const isOwn = owner?.target === target && packageKey(owner) === packageKey(one);
    // A package of a repository that is known has taken its place.
    if (!isOwn && owner?.target === target && delivered.has(packageKey(owner))) continue;
    if (!isPresent(files, folder)) continue;
    found.push(isOwn && owner.revision === one.revision ? one : { ...one, drifted: true });
  }
  for (const [folder, owner] of files.owners) {
    const { repository, package: path, revision } = owner;
    if (owner.target !== target || readable.has(repository) || revision === undefined) continue;
    // An emptied folder deploys nothing: its package was removed.
    if (recorded.has(packageKey(owner)) || isEmptied(files, folder)) continue;
    found.push({ repository, package: path, revision, commit: '', tree: '', drifted: true });
  }
  return found;
}

/** True if the branch has files in a folder, or a file, a link or a submodule in place of it or of a folder around it. */
function isPresent(files: BranchFiles, folder: string): boolean {
  for (let path = folder; path.length > files.directory.length; path = parentOf(path))
    if (files.get(path) !== undefined) return true;
  return !ownFiles(files, folder).next().done;
}

function isEmptied(files: BranchFiles, folder: string): boolean {
  for (const path of ownFiles(files, folder)) if (path !== joinPath(folder, KUSTOMIZATION)) return false;
  return true;
}

/** The files below a folder that belong to no other package inside it. */
function* ownFiles(files: BranchFiles, folder: string): Generator<string> {
  for (const path of files.below(folder)) {
    let inner = parentOf(path);
    while (inner !== folder && !files.owners.has(inner)) inner = parentOf(inner);
    if (inner === folder) yield path;
  }
}
