import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { isWithin, latestWithin, mainParent } from '../../../src/package/plan/records/main-before-merge.ts';
import { latestIn } from '../../../src/package/plan/records/on-main.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { hasCommit } from '../../pull-request/merged/fetch-head.ts';
import { changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { type ChangedPackage, changedPackages, packagesAt } from '../judging/changed-packages.ts';
import { keyAt } from '../judging/read-user-pull.ts';
import { isNear } from './unsure-packages.ts';

/*
 * Merges by a push: hosts report a pull request as merged as soon as its head is in the main branch, however it came there. The commit that they name
 * can have the main branch as any parent, or behind one, can have more than two parents, and can be that of several pull requests.
 */

/** Commits that the main branch was at before a merge. */
export interface MainBefore {
  /** What the host reports, which can be from when the pull request was opened. */
  readonly reported: Oid | undefined;
  /** The last one that is known. */
  readonly last: Oid | undefined;
  /** The last one of those that are surely of the main branch. */
  readonly certain: Oid | undefined;
  /** What the main branch got between `last` and the merge is the branch, as its check showed it. */
  readonly isSure: boolean;
}

/** `checkedOnto`: where the main branch was when this head was checked last, if this process has checked it. */
export async function mainBefore(
  repository: PackageRepository,
  { merged }: Pick<PullRequest, 'merged'>,
  checkedOnto: Oid | undefined,
): Promise<MainBefore> {
  const { git, index } = repository;
  const { commit = '', base, isMergeBase = false } = merged ?? {};
  const reported = base !== undefined && (await hasCommit(repository, base)) ? base : undefined;
  const { leftBehind } = index;
  const exact = isMergeBase ? reported : undefined;
  const certain = await latestWithin(git, [exact, checkedOnto, leftBehind], commit);
  const last = await latestWithin(git, [reported, certain], commit);
  const isLeftAlone = certain === leftBehind && certain !== exact && certain !== checkedOnto;
  const isSure = certain !== undefined && !(isLeftAlone && (await isInParent(git, certain, commit)));
  return { reported, last, certain, isSure };
}

/** The line of the main branch that was left behind can have been left by an earlier push. */
async function isInParent(git: Parameters<typeof isWithin>[0], left: Oid, commit: Oid): Promise<boolean> {
  const [parent] = (await git.readCommit(commit)).parents;
  return parent !== undefined && (await isWithin(git, left, parent));
}

/** How a commit that a host names as the merge of a pull request came to the main branch. */
export interface MergeShape {
  readonly commit: Oid;
  readonly head: Oid | undefined;
  readonly parents: readonly Oid[];
  /** What the main branch had before a merge of Git, otherwise the parent. */
  readonly onto: Oid;
  /** It is a merge of Git, and not the head itself. */
  readonly isMerge: boolean;
  /** It merges the head into the main branch, as the button of a host does, or is a copy of the branch. */
  readonly isUsual: boolean;
  /** It merges another branch, which contains the head. */
  readonly isBelow: boolean;
  /** Where the main branch surely was at some time, if `onto` lacks that: it was reset, or a user has made the merge on another commit. */
  readonly doubted: Oid | undefined;
}

export async function shapeOf(
  { git }: Pick<PackageRepository, 'git'>,
  {
    commit,
    head,
    parents,
  }: { readonly commit: Oid; readonly head: Oid | undefined; readonly parents: readonly [Oid, ...Oid[]] },
  { certain }: MainBefore,
): Promise<MergeShape> {
  const [first] = parents;
  const isMoved = commit === head;
  const isMerge = !isMoved && parents.length > 1;
  const shape = { commit, head, parents, onto: first, isMerge, doubted: undefined };
  if (!shape.isMerge || head === undefined) return { ...shape, isUsual: !isMoved, isBelow: false };
  const isParent = parents.includes(head);
  // A host can report a later head.
  if (!isParent && !(await isWithin(git, head, commit))) return { ...shape, isUsual: true, isBelow: false };
  const parent = await mainParent(git, parents, head);
  const isAsOfHost = isParent && parent === first && parents.length === 2;
  const lacks = certain !== undefined && !(await isWithin(git, certain, parent));
  if (isAsOfHost) return { ...shape, isUsual: !lacks, isBelow: false, doubted: lacks ? certain : undefined };
  // One that lacks what the main branch had is that of another branch.
  return { ...shape, onto: lacks ? certain : parent, isUsual: false, isBelow: !isParent };
}

/**
 * Of the packages that the main branch got by a merge which is not usual, those that are not surely of this pull request. `known`: they are of others
 * with this commit, or published as they are.
 */
export async function foreignPackages(
  repository: PackageRepository,
  { number, base }: Pick<PullRequest, 'number' | 'base'>,
  {
    changed,
    shape: { commit, head, parents, onto, isMerge, isUsual, doubted },
    before: { last, isSure },
    otherPulls,
    isOfUser,
  }: {
    readonly changed: readonly ChangedPackage[];
    readonly shape: MergeShape;
    readonly before: MainBefore;
    readonly otherPulls: () => Promise<readonly PullRequest[]>;
    readonly isOfUser: (pull: PullRequest) => Promise<boolean>;
  },
  signal: AbortSignal,
): Promise<{ readonly known: ReadonlySet<string>; readonly unsure: ReadonlySet<string> }> {
  const isBranch = !isMerge && last !== undefined && isSure;
  if (isUsual || isBranch || head === undefined) return NONE;
  if (doubted !== undefined) {
    const had = new Set(await changedSince(repository, { before: onto, after: doubted }));
    const [known, unsure] = [new Set<string>(), new Set<string>()];
    for (const one of changed)
      if (had.has(one.path)) ((await isLastPublished(repository, one)) ? known : unsure).add(one.path);
    return { known, unsure };
  }
  // Without knowing where the main branch was, any parent can be of it.
  const own = !isMerge
    ? await changedInCommit(repository, parents, changed)
    : onto !== parents[0] && !isSure
      ? new Set()
      : await packagesOfHeads(repository, [head], { main: onto, changed }, signal);
  const others = changed.filter(({ path }) => !own.has(path));
  if (others.length === 0) return NONE;
  const heads: Oid[] = [];
  for (const one of await otherPulls()) {
    // One to another branch publishes nothing here.
    const isOther = one.merged?.commit === commit && one.number !== number && one.base.branch === base.branch;
    if (isOther && (await isOfUser(one)) && (await hasCommit(repository, one.head.commit))) heads.push(one.head.commit);
  }
  const known = new Set(await packagesOfHeads(repository, heads, { main: onto, changed: others }, signal));
  for (const one of others) if (await isLastPublished(repository, one)) known.add(one.path);
  return { known, unsure: new Set(others.flatMap(({ path }) => (known.has(path) ? [] : path))) };
}

const NONE = { known: new Set<string>(), unsure: new Set<string>() };

/**
 * Whether there is a pull request with the head of a parent of a merge, which contains this one: as where one branch is based on the other one and is
 * merged. `merged`: by the same commit, so that it publishes all. `open`: the host may not have noticed that yet.
 */
export async function upperPull(
  { merged, base }: Pick<PullRequest, 'merged' | 'base'>,
  parents: readonly Oid[],
  {
    otherPulls,
    isOfUser,
  }: { otherPulls(): Promise<readonly PullRequest[]>; isOfUser(pull: PullRequest): Promise<boolean> },
): Promise<'merged' | 'open' | undefined> {
  let state: 'open' | undefined;
  for (const one of await otherPulls()) {
    if (!parents.includes(one.head.commit) || !(await isOfUser(one))) continue;
    if (one.merged?.commit === merged?.commit) return 'merged';
    if (one.state === 'open' && one.base.branch === base.branch) state = 'open';
  }
  return state;
}

/** The paths of the packages that some heads change, compared with what they have in common with `main`; of changed ones alone. */
async function packagesOfHeads(
  { git, layout: { directory } }: Pick<PackageRepository, 'git' | 'layout'>,
  heads: readonly Oid[],
  { main, changed }: { readonly main: Oid; readonly changed: readonly ChangedPackage[] },
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const head of heads) {
    const branch = await startOfBranch(git, { main, head }, signal);
    if (branch === undefined) continue;
    const { packages } = await changesOfBranch(git, branch, { after: head, directory });
    for (const { path } of changed) if (packages.some((one) => isNear(one.path, path))) found.add(path);
  }
  return found;
}

async function changedSince(
  { git, layout: { directory } }: Pick<PackageRepository, 'git' | 'layout'>,
  range: { readonly before: Oid; readonly after: Oid },
): Promise<readonly string[]> {
  return (await changedPackages(git, { ...range, directory })).packages.map(({ path }) => path);
}

/** The paths of those that a commit has otherwise than each of its parents. */
async function changedInCommit(
  { git, layout: { directory } }: Pick<PackageRepository, 'git' | 'layout'>,
  parents: readonly Oid[],
  changed: readonly ChangedPackage[],
): Promise<ReadonlySet<string>> {
  const found = new Set(changed.map(({ path }) => path));
  for (const commit of parents) {
    const before = await packagesAt(git, { commit, directory }, changed);
    for (const { path, after } of changed) if (before.get(path)?.tree === after) found.delete(path);
  }
  return found;
}

/** Whether a package is as it was published last. */
async function isLastPublished(
  repository: PackageRepository,
  { path, after }: Pick<ChangedPackage, 'path' | 'after'>,
): Promise<boolean> {
  const { package: name } = keyAt({ repository, workspace: '' }, path);
  const latest = latestIn(repository.index.ofPackage(name));
  if (latest === undefined || latest.outOfBand !== undefined) return false;
  const [tree] = await repository.git.statObjects([`${latest.commit}:${path}`]);
  return tree !== undefined && tree.oid === after;
}
