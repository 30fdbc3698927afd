import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { pickedCommits, startOfRebase } from '../../../src/package/plan/records/rebased-commits.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { fetchHead, MISSING_HEAD_MS } from '../../pull-request/merged/fetch-head.ts';
import { changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { type ChangedPackages, changedPackages, packagesAt } from '../judging/changed-packages.ts';
import { BranchLine } from '../judging/earlier-conditions.ts';
import { startOfCopies } from './copied-commits.ts';
import { type LeftOut, leftOutOf } from './left-out.ts';
import { packagesBelow } from './unsure-packages.ts';
import { foreignPackages, type MainBefore, mainBefore, shapeOf, upperPull } from './unusual-merges.ts';

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

const TOO_MANY_FOLDERS =
  'it changes too many folders, or too deep or malformed ones; change its packages again in smaller pull requests';
const NO_HEAD =
  'its head cannot be fetched from the host, without which it is not known whether a rebase has brought more than its last commit; change what is missing in another pull request';

const NO_BASE =
  'the host does not report where the main branch was before it was moved to the head of the branch; change what is missing in another pull request';

export interface PackagesAtMerge {
  readonly packages: readonly PackageAtMerge[];
  /** The main branch before the merge, as far as the history shows it. */
  readonly main: Oid;
  /** Why it may have changed others too, and the next step; undefined if these are all. */
  readonly unknown: string | undefined;
  /** What the branch changes, and a rebase has not brought to the main branch. */
  readonly leftOut: readonly LeftOut[];
  /** The commits of the branch, where its head is known. */
  readonly line: BranchLine | undefined;
  /** The merged head was that of a branch of the repository: a user who may push has pushed it. */
  readonly isPushed: boolean;
}

export interface MergeSurroundings {
  /** The other pull requests that changed last, in any state; called only for rebases of several commits and for unusual merges. */
  otherPulls(): Promise<readonly PullRequest[]>;
  /** False for the pull request of a proposal. */
  isOfUser(pull: PullRequest): Promise<boolean>;
  /** Where the main branch was when this head was checked last, if this process has checked it. */
  readonly checkedOnto: Oid | undefined;
  /** Since the commit was found. */
  readonly waitedMs: number;
}

/**
 * The packages that the merge of a pull request has changed on the main branch, as it left them. Where the history does not show what the main branch
 * had before, they are those that its branch changes. Without its head it is not known what of a squash or a rebase the branch has: undefined then if
 * the head is still awaited, or another pull request that has this commit too. The mirror has the commit.
 */
export async function packagesAtMerge(
  repository: PackageRepository,
  pull: PullRequest,
  surroundings: MergeSurroundings,
  signal: AbortSignal,
): Promise<PackagesAtMerge | undefined> {
  const { checkedOnto, waitedMs } = surroundings;
  const otherPulls = () => surroundings.otherPulls();
  const isOfUser = (one: PullRequest) => surroundings.isOfUser(one);
  const { merged } = pull;
  const { git, layout } = repository;
  const { directory } = layout;
  const commit = merged?.commit ?? '';
  const { parents } = await git.readCommit(commit);
  // A merge of Git has its head.
  const [first, ofMerge] = parents;
  const isPushed = wasPushed(pull.head);
  const none: PackagesAtMerge = {
    packages: [],
    main: commit,
    leftOut: [],
    unknown: undefined,
    line: undefined,
    isPushed,
  };
  // A repository without an earlier commit has nothing that could be merged into.
  if (first === undefined) return none;
  const head = (await fetchHead(repository, pull, signal)) ? pull.head.commit : ofMerge;
  if (head === undefined && waitedMs < MISSING_HEAD_MS) return undefined;
  const before = await mainBefore(repository, pull, checkedOnto);
  const shape = await shapeOf(repository, { commit, head, parents: [first, ...parents.slice(1)] }, before);
  if (shape.isBelow) {
    const upper = await upperPull(pull, parents, surroundings);
    if (upper === 'merged') return none;
    if (upper === 'open' && waitedMs < MISSING_HEAD_MS) return undefined;
  }
  const { onto } = shape;
  const range = { commit, onto, before, isMergeBase: merged?.isMergeBase === true };
  const merge: MergeStart =
    head === undefined || shape.isMerge
      ? { start: onto }
      : await startOfMerge(repository, { ...range, head }, otherPulls, signal);
  const { start } = merge;
  const found =
    start !== undefined
      ? await changedPackages(git, { before: start, after: commit, directory })
      : await changedByBranch(git, { head, onto, commit, directory }, signal);
  const changed = found.packages;
  const foreign = await foreignPackages(repository, pull, { changed, shape, before, otherPulls, isOfUser }, signal);
  const below = await packagesBelow(repository, { ...merge, changed, head, onto }, signal);
  const paths = new Set(changed.map(({ path }) => path));
  const added = below.packages.filter(({ path }) => !paths.has(path));
  const all = [...changed, ...added]
    .filter(({ path }) => !foreign.known.has(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  const unsure = new Set([...below.packages.map(({ path }) => path), ...foreign.unsure]);
  const [trees, ofHead] = [
    await packagesAt(git, { commit, directory }, all),
    head === undefined ? undefined : await packagesAt(git, { commit: head, directory }, all),
  ];
  const packages = all.map(({ path, before }) => ({
    ...{ path, before, after: trees.get(path)?.tree, hasKptfile: trees.get(path)?.hasFile === true },
    isOfHead: ofHead !== undefined && trees.get(path)?.tree === ofHead.get(path)?.tree,
    isShown: !unsure.has(path),
  }));
  const isCopied = commit !== head && parents.length === 1;
  const leftOut =
    isCopied && start !== undefined && head !== undefined
      ? await leftOutOf(git, { start, commit, head, directory }, signal)
      : [];
  const shown = packages.filter(({ after, isShown }) => isShown || after !== undefined);
  const unknown =
    !found.isComplete || !below.isComplete
      ? TOO_MANY_FOLDERS
      : // Where the main branch was at its parent, it is the one commit of the merge.
        head === undefined && merged?.base !== onto
        ? NO_HEAD
        : commit === head && start === undefined
          ? NO_BASE
          : undefined;
  const line = head === undefined ? undefined : new BranchLine(git, head, signal);
  return { packages: shown, main: start ?? onto, leftOut, unknown, line, isPushed };
}

/** Without a known start: a branch that is in the main branch already is compared with the parent of the merge. */
async function changedByBranch(
  git: PackageRepository['git'],
  { head, onto, commit, directory }: { head: Oid | undefined; onto: Oid; commit: Oid; directory: string },
  signal: AbortSignal,
): Promise<ChangedPackages> {
  const branch = head === undefined ? undefined : await startOfBranch(git, { main: onto, head }, signal);
  return head === undefined || branch === undefined || branch.bases.includes(head)
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
    before: { reported: before, last },
    isMergeBase,
  }: { head: Oid; commit: Oid; onto: Oid; before: MainBefore; isMergeBase: boolean },
  otherPulls: () => Promise<readonly PullRequest[]>,
  signal: AbortSignal,
): Promise<MergeStart> {
  const { git } = repository;
  // A branch that the main branch was moved to has no commit of its own for the merge.
  if (commit === head) return { start: last };
  const rebase = { head, commit, base: before };
  const heads = new Set(before === undefined ? [] : [before]);
  const first = await startOfRebase(git, { ...rebase, before: heads });
  if (first === undefined || first === onto) return { start: first };
  // A host can report a base from before the merge of the branch that this one was based on, whose copies have the same times.
  const others = (await otherPulls()).flatMap(({ merged }) => merged?.commit ?? []);
  const earliest = await startOfRebase(git, { ...rebase, before: new Set([...heads, ...others]) });
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
