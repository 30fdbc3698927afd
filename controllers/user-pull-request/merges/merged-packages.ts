import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { pickedCommits, startOfRebase } from '../../../src/package/plan/records/rebased-commits.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { fetchHead, hasCommit } from '../../pull-request/merged/fetch-head.ts';
import { changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { type ChangedPackages, changedPackages, packagesAt } from '../judging/changed-packages.ts';
import { startOfCopies } from './copied-commits.ts';
import { type LeftOut, leftOutOf } from './left-out.ts';
import { packagesBelow } from './unsure-packages.ts';

/** A package that a pull request has changed, as its merge left it. */
export interface PackageAtMerge {
  /** From the root of the repository. */
  readonly path: string;
  /** Its tree before the merge; undefined where there was none. */
  readonly before: Oid | undefined;
  /** Undefined where the merge removed the package. */
  readonly after: Oid | undefined;
  /** False if its Kptfile is a symbolic link or a submodule, with which it is none. */
  readonly hasKptfile: boolean;
  /** It is the package of the head, with nothing of another one. */
  readonly isOfHead: boolean;
  /** False if the history does not show that it was this merge that changed it. */
  readonly isShown: boolean;
}

export interface PackagesAtMerge {
  readonly packages: readonly PackageAtMerge[];
  /** False if the pull request changes too many folders, or too deep ones, to know all of its packages. */
  readonly isComplete: boolean;
  /** What the branch changes, and a rebase has not brought to the main branch. */
  readonly leftOut: readonly LeftOut[];
  /** The merged head was that of a branch of the repository: a user who may push has pushed it. */
  readonly isPushed: boolean;
}

/**
 * The packages that the merge of a pull request has changed on the main branch, as it left them. Where the history does not show what the main branch
 * had before, they are those that its branch changes. Undefined if the mirror does not have the commit yet. `otherMerges` returns the commits of other
 * merges, which are read only for a rebase of several commits.
 */
export async function packagesAtMerge(
  repository: PackageRepository,
  pull: PullRequest,
  otherMerges: () => Promise<ReadonlySet<Oid>>,
  signal: AbortSignal,
): Promise<PackagesAtMerge | undefined> {
  const { head, merged } = pull;
  const { git, layout } = repository;
  const commit = merged?.commit ?? '';
  if (!(await hasCommit(repository, commit))) return undefined;
  const { parents } = await git.readCommit(commit);
  const [onto] = parents;
  const isPushed = wasPushed(head);
  // A repository without an earlier commit has nothing that could be merged into.
  if (onto === undefined) return { packages: [], leftOut: [], isComplete: true, isPushed };
  const isFetched = await fetchHead(repository, pull, signal);
  const range = { head: head.commit, commit, onto, base: merged?.base, isMergeBase: merged?.isMergeBase === true };
  const merge: MergeStart = isFetched ? await startOfMerge(repository, range, otherMerges, signal) : { start: onto };
  const { start } = merge;
  const { directory } = layout;
  const { packages: changed, isComplete } =
    start === undefined
      ? await changedByBranch(git, { head: head.commit, onto, commit, directory }, signal)
      : await changedPackages(git, { before: start, after: commit, directory });
  const below = await packagesBelow(repository, { ...merge, changed, head: head.commit, onto }, signal);
  const paths = new Set(changed.map(({ path }) => path));
  const added = below.packages.filter(({ path }) => !paths.has(path));
  const all = [...changed, ...added].sort((a, b) => (a.path < b.path ? -1 : 1));
  const unsure = new Set(below.packages.map(({ path }) => path));
  const [trees, ofHead] = [
    await packagesAt(git, { commit, directory }, all),
    isFetched ? await packagesAt(git, { commit: head.commit, directory }, all) : undefined,
  ];
  const packages = all.map(({ path, before, after }) => ({
    ...{ path, before, after: trees.get(path)?.tree, hasKptfile: trees.get(path)?.hasFile === true },
    isOfHead: trees.get(path)?.tree === (ofHead === undefined ? after : ofHead.get(path)?.tree),
    isShown: !unsure.has(path),
  }));
  const isCopied = isFetched && commit !== head.commit && parents.length === 1;
  const leftOut =
    isCopied && start !== undefined
      ? await leftOutOf(git, { start, commit, head: head.commit, directory }, signal)
      : [];
  const shown = packages.filter(({ after, isShown }) => isShown || after !== undefined);
  return { packages: shown, leftOut, isComplete: isComplete && below.isComplete, isPushed };
}

/** Without a known start: a branch that is in the main branch already is compared with the parent of the merge. */
async function changedByBranch(
  git: PackageRepository['git'],
  { head, onto, commit, directory }: { head: Oid; onto: Oid; commit: Oid; directory: string },
  signal: AbortSignal,
): Promise<ChangedPackages> {
  const branch = await startOfBranch(git, { main: onto, head }, signal);
  return branch === undefined || branch.bases.includes(head)
    ? changedPackages(git, { before: onto, after: commit, directory })
    : changesOfBranch(git, branch, { after: head, directory });
}

interface MergeStart {
  /** The commit of the main branch before a merge; undefined where the history does not show it. */
  readonly start: Oid | undefined;
  /** Commits after this one can be part of a rebase by their times alone. */
  readonly earliest?: Oid | undefined;
  /** None of them can: the commit of the merge has the changes of several commits of the branch. */
  readonly isSquash?: boolean;
}

async function startOfMerge(
  repository: PackageRepository,
  {
    head,
    commit,
    onto,
    base,
    isMergeBase,
  }: { head: Oid; commit: Oid; onto: Oid; base: string | undefined; isMergeBase: boolean },
  otherMerges: () => Promise<ReadonlySet<Oid>>,
  signal: AbortSignal,
): Promise<MergeStart> {
  const { git } = repository;
  const before = base !== undefined && (await hasCommit(repository, base)) ? base : undefined;
  // A branch that the main branch was moved to has no commit of its own for the merge.
  if (commit === head) return { start: before };
  if ((await git.readCommit(commit)).parents.length > 1) return { start: onto };
  const rebase = { head, commit, base: before };
  const heads = new Set(before === undefined ? [] : [before]);
  const first = await startOfRebase(git, { ...rebase, before: heads });
  if (first === undefined || first === onto) return { start: first };
  // A host can report a base from before the merge of the branch that this one was based on, whose copies have the same times.
  const earliest = await startOfRebase(git, { ...rebase, before: new Set([...heads, ...(await otherMerges())]) });
  const picked = await pickedCommits(git, head, before ?? onto);
  if (earliest === undefined || picked === undefined) return { start: undefined };
  return { ...(await startOfCopies(git, { picked, commit, start: earliest, isMergeBase }, signal)), earliest };
}

/**
 * By what the host states: the branch can have been removed, moved or created again since. A head of a fork is none, whatever
 * branches contain it later: a user who merges it does not set the conditions in it. One that never was a branch, such as a push to `refs/for/main`,
 * is reported by its ref or without a name.
 */
function wasPushed({ branch, isSameRepository }: PullRequest['head']): boolean {
  return isSameRepository && branch !== '' && !branch.startsWith('refs/');
}
