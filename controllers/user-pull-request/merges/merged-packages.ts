import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { changedPackages } from '../changed-packages.ts';
import { packagesAt } from '../read-user-pull.ts';

/** A package that a pull request has changed, as its merge left it. */
export interface PackageAtMerge {
  /** From the root of the repository. */
  readonly path: string;
  /** Its tree before the merge; undefined where there was none. */
  readonly before: Oid | undefined;
  /** Undefined where the merge removed the package. */
  readonly after: Oid | undefined;
}

export interface PackagesAtMerge {
  readonly packages: readonly PackageAtMerge[];
  /** False if the pull request changes too many folders to know all of its packages. */
  readonly isComplete: boolean;
  /** A branch of the repository had the merged head: a user who may push has pushed it. */
  readonly isPushed: boolean;
}

/**
 * The packages that a pull request has changed, at the commit of its merge. They are those that differ between the start of its branch and its head,
 * since a rebase makes several commits on the main branch. Undefined if the mirror does not have the commit yet.
 */
export async function packagesAtMerge(
  repository: PackageRepository,
  { number, head, merged }: PullRequest,
  signal: AbortSignal,
): Promise<PackagesAtMerge | undefined> {
  const { git, layout } = repository;
  const commit = merged?.commit ?? '';
  if (!(await hasCommit(repository, commit))) return undefined;
  const [onto] = (await git.readCommit(commit)).parents;
  const isPushed = await wasPushed(repository, head);
  // A repository without an earlier commit has nothing that could be merged into.
  if (onto === undefined) return { packages: [], isComplete: true, isPushed };
  let range = { before: onto, after: commit };
  const isFetched =
    (await hasCommit(repository, head.commit)) || (await fetchHead(repository, number, signal)) === head.commit;
  if (isFetched) {
    // A branch that the main branch was moved to has no commit of its own for the merge.
    const start = commit === head.commit && isOid(merged?.base ?? '') ? (merged?.base ?? onto) : onto;
    const before = await mergeBase(git, start, head.commit, signal);
    if (before !== undefined && before !== head.commit) range = { before, after: head.commit };
  }
  const { packages: changed, isComplete } = await changedPackages(git, { ...range, directory: layout.directory });
  const trees = await packagesAt(git, commit, changed);
  const packages = changed.map(({ path, before }) => ({ path, before, after: trees.get(path) }));
  return { packages, isComplete, isPushed };
}

async function hasCommit({ git }: PackageRepository, commit: string): Promise<boolean> {
  if (!isOid(commit)) return false;
  const [stat] = await git.statObjects([commit]);
  return stat?.type === 'commit';
}

async function fetchHead(repository: PackageRepository, number: number, signal: AbortSignal): Promise<Oid | undefined> {
  return repository.isMirror ? repository.untracked.fetchPull(number, signal) : undefined;
}

/** Hosts remove branches that were merged. One that never was a branch, such as a push to `refs/for/main`, is reported by its ref or without a name. */
async function wasPushed({ git }: PackageRepository, { branch, commit, isSameRepository }: PullRequest['head']) {
  if (!isSameRepository || branch === '' || branch.startsWith('refs/')) return false;
  const tip = await git.resolveRef(`refs/heads/${branch}`);
  return tip === undefined || tip === commit;
}
