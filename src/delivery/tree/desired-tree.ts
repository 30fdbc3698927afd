import type { TargetSettings } from '../delivery-target.ts';
import { compareText, joinPath, pathProblem } from '../path-rules.ts';
import type { DeliveryRefusal } from '../refusal.ts';
import { type PackageRefusal, packageKey } from '../selection/select-revisions.ts';
import type { BranchFiles } from './branch-files.ts';
import { BranchView } from './branch-view.ts';
import type { Desired, DesiredRevision, PackageState } from './desired-result.ts';
import { manifestsToWrite, refusedFor, withOwner } from './package-files.ts';
import { PathTree } from './path-tree.ts';
import { type DeliveredPackage, writeMessage } from './trailers.ts';
import { UnwantedFolders } from './unwanted-folders.ts';

/** A package with the result of its last evaluation. */
interface Entry {
  readonly revision: DesiredRevision;
  readonly key: string;
  readonly folder: string;
  /** Reason why the path of the package is invalid. */
  readonly problem: string | undefined;
  /** The last update that wanted it. */
  round: number;
  refused?: PackageRefusal | undefined;
  state?: PackageState | undefined;
  isMissing: boolean;
}

type Edits = Map<string, Uint8Array | null>;

/**
 * The desired content of one target over time: see `desired`, which is the same for a new object. A later update evaluates only the packages
 * that are others than before, whose part of the branch changed, or whose folder was not as desired.
 */
export class DesiredTree {
  readonly #target: TargetSettings;
  readonly #files: BranchFiles;
  #branch: BranchView;
  #unreadable: ReadonlySet<string> = new Set();
  #kept: ReadonlySet<string> = new Set();
  #round = 0;
  readonly #byRevision = new Map<DesiredRevision, Entry>();
  /** By folder; several packages in one folder are in the order of their keys. Without packages whose path is invalid. */
  readonly #byFolder = new PathTree<Entry[]>();
  /** In the order of the keys. */
  #sorted: readonly Entry[] = [];
  readonly #stale = new Set<Entry>();
  readonly #unwanted = new UnwantedFolders();

  /** Follows the changes of `files`, in place of an earlier object. */
  constructor(target: TargetSettings, files: BranchFiles) {
    this.#target = target;
    this.#files = files;
    this.#branch = new BranchView(files, target.name, this.#unreadable);
    for (const folder of files.owners.keys()) this.#followOwner(folder);
    files.onChange((path, owned) => {
      this.#touch(path);
      if (owned === undefined) return;
      this.#touch(owned);
      this.#followOwner(owned);
    });
  }

  /** See `desired`. Revisions are compared by identity: the same object is the same revision, apart from what `built` has in memory. */
  *update(
    revisions: readonly DesiredRevision[],
    unreadable: ReadonlySet<string>,
    kept: ReadonlySet<string>,
  ): Generator<void, Desired> {
    if (!isSameSet(unreadable, this.#unreadable)) this.#setUnreadable(unreadable);
    yield* this.#follow(revisions);
    this.#keep(kept);
    const edits: Edits = new Map();
    for (const entry of [...this.#stale].sort(byKey)) {
      yield;
      this.#evaluate(entry, edits);
      if (entry.state?.changed !== true) this.#stale.delete(entry);
    }
    const refused: PackageRefusal[] = [];
    const packages: PackageState[] = [];
    const delivered: DeliveredPackage[] = [];
    const missing: DesiredRevision[] = [];
    for (const { revision, refused: refusal, state, isMissing } of this.#sorted) {
      if (refusal !== undefined) refused.push(refusal);
      if (state === undefined) continue;
      packages.push(state);
      if (isMissing) missing.push(revision);
      if (state.changed) delivered.push(revision);
    }
    const removals: Edits = new Map();
    const { removed, folders } = yield* this.#unwanted.remove(this.#target, this.#byFolder, this.#branch, removals);
    // An empty selection is more often a mistake than intended.
    const isHeld = this.#target.allowPrune !== true && revisions.length === 0;
    if (!isHeld) for (const [path, data] of removals) edits.set(path, data);
    const sorted = new Map([...edits].sort(([a], [b]) => compareText(a, b)));
    const message = sorted.size === 0 ? '' : writeMessage(this.#target.name, { delivered, removed });
    return { edits: sorted, message, packages, refused, missing, pruneBlocked: isHeld ? folders : [] };
  }

  /** Adds the revisions that are new, and drops those that are gone. */
  *#follow(revisions: readonly DesiredRevision[]): Generator<void> {
    this.#round += 1;
    const added: Entry[] = [];
    for (const revision of revisions) {
      const known = this.#byRevision.get(revision);
      if (known !== undefined) {
        known.round = this.#round;
        continue;
      }
      yield;
      added.push(this.#add(revision));
    }
    if (added.length === 0 && this.#byRevision.size === revisions.length && this.#sorted.length === revisions.length)
      return;
    for (const entry of this.#byRevision.values()) {
      if (entry.round === this.#round) continue;
      yield;
      this.#drop(entry);
    }
    const there = this.#sorted.filter((entry) => entry.round === this.#round);
    const isComplete = there.length + added.length === this.#byRevision.size;
    // Two ordered lists are merged fast.
    const all = isComplete ? [...there, ...added.sort(byKey)] : [...this.#byRevision.values()];
    this.#sorted = all.sort(byKey);
  }

  #add(revision: DesiredRevision): Entry {
    const problem = pathProblem(revision.package);
    const folder = joinPath(this.#files.directory, revision.package);
    const entry: Entry = { revision, key: packageKey(revision), folder, problem, round: this.#round, isMissing: false };
    this.#byRevision.set(revision, entry);
    this.#stale.add(entry);
    if (problem !== undefined) return entry;
    this.#byFolder.set(folder, [...(this.#byFolder.get(folder) ?? []), entry].sort(byKey));
    this.#folderChanged(folder);
    return entry;
  }

  #drop(entry: Entry): void {
    const { revision, folder } = entry;
    this.#byRevision.delete(revision);
    this.#stale.delete(entry);
    if (entry.problem !== undefined) return;
    const others = (this.#byFolder.get(folder) ?? []).filter((other) => other !== entry);
    if (others.length === 0) this.#byFolder.delete(folder);
    else this.#byFolder.set(folder, others);
    this.#folderChanged(folder);
  }

  #folderChanged(folder: string): void {
    this.#touch(folder);
    this.#followOwner(folder);
  }

  /** Notes a change at a path: of a file, an owner or the packages there. */
  #touch(path: string): void {
    for (const entries of this.#byFolder.above(path)) for (const entry of entries) this.#stale.add(entry);
    for (const [, entries] of this.#byFolder.below(path)) for (const entry of entries) this.#stale.add(entry);
    this.#unwanted.touch(path);
  }

  /** Notes whether a folder of this target is wanted. */
  #followOwner(folder: string): void {
    const isWanted = this.#byFolder.get(folder) !== undefined;
    this.#unwanted.set(folder, isWanted ? undefined : this.#branch.ownFolder(folder));
  }

  /** All depends on which repositories can be read, and that changes seldom. */
  #setUnreadable(unreadable: ReadonlySet<string>): void {
    this.#unreadable = new Set(unreadable);
    this.#branch = new BranchView(this.#files, this.#target.name, this.#unreadable);
    for (const entry of this.#byRevision.values()) this.#stale.add(entry);
    for (const folder of this.#files.owners.keys()) this.#followOwner(folder);
    this.#unwanted.touch('');
  }

  #keep(kept: ReadonlySet<string>): void {
    if (isSameSet(kept, this.#kept)) return;
    for (const entry of this.#byRevision.values())
      if (kept.has(entry.key) !== this.#kept.has(entry.key)) this.#stale.add(entry);
    this.#kept = new Set(kept);
  }

  #evaluate(entry: Entry, edits: Edits): void {
    const { revision, folder, key } = entry;
    const { repository, package: path, revision: number } = revision;
    const name = { repository, package: path, revision: number };
    const refusal = this.#refusal(entry);
    const outcome = refusal ?? manifestsToWrite(this.#target, revision, folder, this.#branch);
    entry.refused = outcome?.refused && { ...name, ...outcome.refused };
    entry.state = undefined;
    entry.isMissing = false;
    if (entry.refused !== undefined) return;
    const objects = outcome?.manifests?.objects ?? 0;
    if (this.#kept.has(key)) {
      entry.state = { ...name, folder, objects, changed: false };
      return;
    }
    const owner = { target: this.#target.name, ...name };
    const result =
      outcome?.manifests === undefined
        ? 'missing'
        : this.#branch.replace(folder, withOwner(owner, outcome.manifests), edits);
    entry.isMissing = result === 'missing';
    entry.state = { ...name, folder, objects, changed: result !== 'same' };
  }

  /** What is wrong with the folder of a package, whatever it contains. */
  #refusal(entry: Entry): { readonly refused: DeliveryRefusal; readonly manifests?: undefined } | undefined {
    const { revision, folder, problem } = entry;
    if (problem !== undefined)
      return refusedFor('InvalidPath', `package path ${JSON.stringify(revision.package)} ${problem}`);
    const other = this.#collidingWith(entry);
    if (other === undefined) return undefined;
    const others = `${other.folder} of package ${other.key} v${other.revision.revision}`;
    const advice = 'give the packages targets with different directories';
    return refusedFor('AmbiguousFolder', `folder ${folder} collides with ${others}: ${advice}`);
  }

  /** A package with the same folder, or one around or inside it. All of them are refused, since none has priority. */
  #collidingWith(entry: Entry): Entry | undefined {
    const { folder } = entry;
    const same = this.#byFolder.get(folder) ?? [];
    const at = same.indexOf(entry);
    if (at > 0) return same[at - 1];
    const outer = [...this.#byFolder.above(folder)].at(-2);
    if (outer !== undefined) return outer.at(-1);
    if (same.length > 1) return same[1];
    const [, inner] = this.#byFolder.below(folder).next().value ?? [];
    return inner?.[0];
  }
}

function byKey(a: Entry, b: Entry): number {
  return compareText(a.key, b.key) || a.revision.revision - b.revision.revision;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a === b || (a.size === b.size && [...a].every((one) => b.has(one)));
}
