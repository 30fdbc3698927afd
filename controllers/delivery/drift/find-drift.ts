import type { DeliveredPackage } from '../../../src/delivery/delivered/delivered-package.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { PackageState } from '../../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../../src/delivery/tree/kustomization.ts';
import { readMessage, readTarget } from '../../../src/delivery/tree/trailers.ts';
import type { GitRepository, Oid, Signature } from '../../../src/git/git-repository.ts';

/** A package whose folder another writer changed after its delivery. */
export interface Drift {
  readonly of: PackageState;
  /** The last commit that changed the folder; undefined if it was not found among the commits that are searched. */
  readonly change: { readonly commit: Oid; readonly author: Signature } | undefined;
}

/**
 * The differing folders that the target delivered in their present revision before: the others have an update to come. `known` are the
 * packages that Sluice recorded as delivered.
 */
export function deliveredBefore(
  packages: readonly PackageState[],
  folders: readonly FolderOwner[],
  known: readonly DeliveredPackage[],
): PackageState[] {
  const changed = packages.filter((one) => one.changed);
  if (changed.length === 0) return [];
  // There can be many more folders than changed packages.
  const found = new Set<PackageState>();
  const byPath = Map.groupBy(changed, (one) => one.package);
  for (const { repository, package: path, revision } of [...folders, ...known])
    for (const one of byPath.get(path) ?? [])
      if (one.repository === repository && one.revision === revision) found.add(one);
  return changed.filter((one) => found.has(one));
}

/** Commits of a branch that are searched. A change is found soon after it is made, so it is mostly among the newest. */
const MAX_COMMITS = 2000;
/** Folders whose ids are compared, in all commits together. */
const MAX_COMPARISONS = 50_000;

/**
 * Returns which of the folders that differ from their package were changed by another writer, and by which commit. A folder that this
 * target changed last differs for another reason: a changed setting, or another version of Sluice. A folder about which the searched
 * commits show nothing counts as drift, since a change by a user must not be mistaken for one of Sluice's own.
 */
export async function findDrift(
  git: GitRepository,
  head: Oid,
  target: string,
  differing: readonly PackageState[],
): Promise<Drift[]> {
  const undecided = new Map(differing.map((of) => [packageKey(of), of]));
  const drifts: Drift[] = [];
  let comparisons = MAX_COMPARISONS;
  let next: Oid | undefined = head;
  for (let read = 0; next !== undefined && undecided.size > 0 && read < MAX_COMMITS; read += 1) {
    const commit = await git.readCommit(next);
    const parent: Oid | undefined = commit.parents[0];
    const writer = readTarget(commit.message);
    if (writer === target) {
      const { delivered, removed } = readMessage(commit.message);
      const claimed = [...delivered, ...removed].flatMap((one) => undecided.get(packageKey(one)) ?? []);
      comparisons -= 3 * claimed.length;
      if (comparisons < 0) break;
      // Any writer can write these trailers: they count for folders that the commit changed.
      for (const of of await changedIn(git, next, parent, claimed)) undecided.delete(packageKey(of));
      const remaining = claimed.filter((of) => !undecided.has(packageKey(of)));
      for (const of of await changedIn(git, head, next, remaining)) drifts.push({ of, change: undefined });
    } else if (writer === undefined) {
      comparisons -= 2 * undecided.size;
      if (comparisons < 0) break;
      for (const of of await changedIn(git, next, parent, [...undecided.values()])) {
        undecided.delete(packageKey(of));
        drifts.push({ of, change: { commit: next, author: commit.author } });
      }
    }
    // Another target writes other folders; if not, the folder differs from the delivery that is found further down.
    next = parent;
  }
  // A folder that no commit contains was never delivered to this branch.
  if (next === undefined) return drifts;
  return [...drifts, ...[...undecided.values()].map((of) => ({ of, change: undefined }))];
}

/** The folders that differ between two commits. */
async function changedIn(
  git: GitRepository,
  commit: Oid,
  parent: Oid | undefined,
  states: readonly PackageState[],
): Promise<PackageState[]> {
  const oidsAt = async (at: Oid | undefined) =>
    at === undefined ? [] : git.statObjects(states.map(({ folder }) => `${at}:${folder}`));
  const [after, before] = await Promise.all([oidsAt(commit), oidsAt(parent)]);
  return states.filter((_, index) => after[index]?.oid !== before[index]?.oid);
}
