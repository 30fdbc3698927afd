import { runAtOnce } from '../../package/index/steps.ts';
import type { TargetSettings } from '../delivery-target.ts';
import { compareText, isInside, joinPath, normalizeDirectory, pathProblem } from '../path-rules.ts';
import type { DeliveryRefusal } from '../refusal.ts';
import { type PackageRefusal, packageKey } from '../selection/select-revisions.ts';
import { BranchView, type DesiredFile, type PresentFile } from './branch-view.ts';
import { type FolderOwner, KUSTOMIZATION, writeKustomization } from './kustomization.ts';
import type { ManifestsOutcome } from './manifests.ts';
import { type DeliveredPackage, type RemovedPackage, writeMessage } from './trailers.ts';

/** A revision that the target is to deliver, with the result of `manifestsOf` for its files. */
export interface DesiredRevision extends DeliveredPackage {
  readonly built: ManifestsOutcome<DesiredFile>;
}

export interface Desired {
  /** By path from the root of the target's repository: new content, or null to remove the file. Empty if the branch is as desired. */
  readonly edits: ReadonlyMap<string, Uint8Array | null>;
  /** For the commit that makes the edits; empty without edits. */
  readonly message: string;
  /** The packages that are as desired after the edits. */
  readonly packages: readonly PackageState[];
  /** Packages whose folder stays as it is, and why. By repository and package. */
  readonly refused: readonly PackageRefusal[];
  /** Revisions whose contents are required and not cached: the edits are incomplete, and the caller loads these and calls again. */
  readonly missing: readonly DesiredRevision[];
  /** Folders that are not removed because no package would remain and the target does not set `allowPrune`. */
  readonly pruneBlocked: readonly string[];
}

export interface PackageState {
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
  /** From the root of the target's repository. */
  readonly folder: string;
  readonly objects: number;
  /** False if the branch has all of it already. */
  readonly changed: boolean;
}

/**
 * Computes the edits after which a target's branch contains exactly these revisions. Pure; equal inputs give equal bytes in
 * any order, and a second call after applying the edits gives none.
 *
 * `revisions` must be complete: the folders of other packages are removed, except those of packages from the repositories in
 * `unreadable`, whose packages are unknown at present. `present` has the files below the target's directory by path from the
 * root of the repository. Throws InvalidInput if the target's directory is no valid path.
 */
export function desired(
  target: TargetSettings,
  revisions: readonly DesiredRevision[],
  present: ReadonlyMap<string, PresentFile>,
  unreadable: ReadonlySet<string> = new Set(),
): Desired {
  return runAtOnce(desiredInSteps(target, revisions, present, unreadable));
}

/** As `desired`, with a pause after each package, so that a target with tens of thousands of packages does not block the event loop. */
export function* desiredInSteps(
  target: TargetSettings,
  revisions: readonly DesiredRevision[],
  present: ReadonlyMap<string, PresentFile>,
  unreadable: ReadonlySet<string> = new Set(),
): Generator<void, Desired> {
  const directory = normalizeDirectory(target.directory);
  const branch = new BranchView(present, directory, target.name, unreadable);
  const ordered = revisions.toSorted((a, b) => compareText(packageKey(a), packageKey(b)) || a.revision - b.revision);
  const folders = new Map(ordered.map((revision) => [revision, joinPath(directory, revision.package)]));
  const clashes = findCollisions(folders);
  const edits = new Map<string, Uint8Array | null>();
  const refused: PackageRefusal[] = [];
  const packages: PackageState[] = [];
  const delivered: DeliveredPackage[] = [];
  const missing: DesiredRevision[] = [];
  yield;

  for (const [revision, folder] of folders) {
    yield;
    const { repository, package: path, revision: number } = revision;
    const clash = clashes.get(revision);
    const outcome = clash === undefined ? evaluate(target, revision, folder, branch) : { refused: clash };
    if (outcome.manifests === undefined) {
      refused.push({ repository, package: path, revision: number, ...outcome.refused });
      continue;
    }
    const { files, objects } = outcome.manifests;
    const owner = { target: target.name, repository, package: path, revision: number };
    const list = listOf(owner, files);
    const outcomeOf = branch.replace(folder, new Map<string, DesiredFile>([...files, [KUSTOMIZATION, list]]), edits);
    if (outcomeOf === 'missing') missing.push(revision);
    const changed = outcomeOf !== 'same';
    packages.push({ repository, package: path, revision: number, folder, objects, changed });
    if (changed) delivered.push(revision);
  }

  const removals = new Map<string, Uint8Array | null>();
  const { removed, folders: deleted } = yield* removeUndesired(target, new Set(folders.values()), branch, removals);
  // An empty selection is more often a mistake than intended.
  const isHeld = target.allowPrune !== true && revisions.length === 0;
  if (!isHeld) for (const [path, data] of removals) edits.set(path, data);
  const sorted = new Map([...edits].sort(([a], [b]) => compareText(a, b)));
  const message = sorted.size === 0 ? '' : writeMessage(target.name, { delivered, removed });
  return { edits: sorted, message, packages, refused, missing, pruneBlocked: isHeld ? deleted : [] };
}

/** Lists by the files that they name: the list of an unchanged package is computed once. */
const lists = new WeakMap<ReadonlyMap<string, DesiredFile>, Map<string, Uint8Array>>();
/** Lists that are cached for one revision: one for each target that delivers it. */
const MAX_LISTS_PER_REVISION = 16;

function listOf(owner: FolderOwner, files: ReadonlyMap<string, DesiredFile>): Uint8Array {
  const key = JSON.stringify([owner.target, owner.repository, owner.package, owner.revision]);
  const kept = lists.get(files) ?? new Map<string, Uint8Array>();
  const known = kept.get(key);
  if (known !== undefined) return known;
  const list = writeKustomization(owner, [...files.keys()].sort(compareText));
  if (kept.size < MAX_LISTS_PER_REVISION) lists.set(files, kept.set(key, list));
  return list;
}

/** Packages with the same folder, or with one inside that of another. All of them are refused, since none has priority. */
function findCollisions(folders: ReadonlyMap<DesiredRevision, string>): Map<DesiredRevision, DeliveryRefusal> {
  const clashes = new Map<DesiredRevision, DeliveryRefusal>();
  const note = (one: DesiredRevision, other: DesiredRevision): void => {
    if (clashes.has(one)) return;
    const others = `${folders.get(other)} of package ${packageKey(other)} v${other.revision}`;
    const message = `folder ${folders.get(one)} collides with ${others}: give the packages targets with different directories`;
    clashes.set(one, { reason: 'AmbiguousFolder', message });
  };
  // With "/" as the lowest character a folder is directly followed by what lies inside it.
  const key = (folder: string): string => folder.replaceAll('/', '\0');
  const sorted = [...folders].sort(([, a], [, b]) => compareText(key(a), key(b)));
  const around: [DesiredRevision, string][] = [];
  for (const [revision, folder] of sorted) {
    while (around.length > 0 && !isInside(folder, around.at(-1)?.[1] ?? '')) around.pop();
    const outer = around.at(-1);
    if (outer !== undefined) {
      note(revision, outer[0]);
      note(outer[0], revision);
    }
    around.push([revision, folder]);
  }
  return clashes;
}

/** The manifests to write, or why they must not be written. */
function evaluate(
  target: TargetSettings,
  revision: DesiredRevision,
  folder: string,
  branch: BranchView,
): ManifestsOutcome<DesiredFile> {
  const problem = pathProblem(revision.package);
  if (problem !== undefined)
    return refusedFor('InvalidPath', `package path ${JSON.stringify(revision.package)} ${problem}`);
  if (revision.outOfBand !== undefined && !target.allowOutOfBand)
    return refusedFor(
      'OutOfBand',
      `v${revision.revision} was published out of band (${revision.outOfBand}), and the target does not allow that`,
    );
  if (revision.built.manifests === undefined) return revision.built;
  const [secret] = revision.built.manifests.openSecrets;
  if (secret !== undefined && !target.allowSecrets)
    return refusedFor(
      'UnencryptedSecret',
      `${secret} is not encrypted: seal or encrypt it, refer to an external Secret, or set allowSecrets: true on the target`,
    );
  const why = branch.foreignReason(folder, revision);
  if (why === undefined) return revision.built;
  const advice = 'move it away or choose another directory';
  return refusedFor('ForeignFolder', `folder ${folder} must not be written: ${why}; ${advice}`);
}

function refusedFor(reason: DeliveryRefusal['reason'], message: string): ManifestsOutcome<DesiredFile> {
  return { refused: { reason, message } };
}

/** Empties or removes the folders of this target that no revision has any more. */
function* removeUndesired(
  target: TargetSettings,
  wanted: ReadonlySet<string>,
  branch: BranchView,
  edits: Map<string, Uint8Array | null>,
): Generator<void, { readonly removed: RemovedPackage[]; readonly folders: string[] }> {
  const removed: RemovedPackage[] = [];
  const folders: string[] = [];
  const unwanted = new Map(branch.ownFolders().filter(([folder]) => !wanted.has(folder)));
  /** Desired folders by each undesired folder that contains them. */
  const inside = new Map<string, string[]>();
  for (const folder of unwanted.size === 0 ? [] : wanted) {
    for (const outer of ancestorsOf(folder)) if (unwanted.has(outer)) addTo(inside, outer, folder);
    yield;
  }
  for (const [folder, owner] of unwanted) {
    yield;
    // A folder inside one that is written or removed is handled with that one.
    if (ancestorsOf(folder).some((outer) => wanted.has(outer) || unwanted.has(outer))) continue;
    const spared = inside.get(folder) ?? [];
    const files = new Map<string, Uint8Array>();
    // An empty list above folders in use would hide them from a scan from the top.
    if (target.onRemoval === 'empty' && spared.length === 0) files.set(KUSTOMIZATION, writeKustomization(owner, []));
    if (branch.replace(folder, files, edits, spared) === 'same') continue;
    removed.push({ repository: owner.repository, package: owner.package });
    folders.push(folder);
  }
  return { removed: removed.sort((a, b) => compareText(packageKey(a), packageKey(b))), folders };
}

/** The folders that contain a folder, the innermost first. */
function ancestorsOf(folder: string): string[] {
  const ancestors: string[] = [];
  for (let end = folder.lastIndexOf('/'); end > 0; end = folder.lastIndexOf('/', end - 1))
    ancestors.push(folder.slice(0, end));
  return ancestors;
}

function addTo(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
