import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { changesOfBranch, startOfBranch } from '../judging/branch-changes.ts';
import { type ChangedPackage, type ChangedPackages, changedPackages, packagesAt } from '../judging/changed-packages.ts';
import { keyAt } from '../judging/read-user-pull.ts';

const NOTHING: ChangedPackages = { packages: [], isComplete: true };

/**
 * The packages that commits of the main branch have changed which the times of their authors alone make part of a rebase, and those that copies of
 * commits have changed and the branch as a whole has not: commits of a branch can undo one another, so that its check has not judged them. What was
 * published there is none of them. A squash has no such commits: of what was changed below it, only packages that the branch changes can be meant.
 */
export async function packagesBelow(
  repository: PackageRepository,
  {
    start,
    earliest,
    isSquash,
    changed,
    head,
    onto,
  }: {
    readonly start: Oid | undefined;
    readonly earliest?: Oid | undefined;
    readonly isSquash?: boolean;
    /** Since `start`. */
    readonly changed: readonly ChangedPackage[];
    readonly head: Oid | undefined;
    readonly onto: Oid;
  },
  signal: AbortSignal,
): Promise<ChangedPackages> {
  if (start === undefined || earliest === undefined || earliest === onto || head === undefined) return NOTHING;
  const { git, layout } = repository;
  const { directory } = layout;
  const branch = await startOfBranch(git, { main: start, head }, signal);
  const ofBranch = branch === undefined ? NOTHING : await changesOfBranch(git, branch, { after: head, directory });
  const undone =
    start === onto ? [] : changed.filter(({ path }) => !ofBranch.packages.some((one) => isNear(one.path, path)));
  const range = { before: earliest, after: start, directory };
  const below =
    earliest === start
      ? NOTHING
      : isSquash === true
        ? await changedOf(git, range, ofBranch)
        : await changedPackages(git, range);
  const others = below.packages.filter(({ path }) => !changed.some((one) => one.path === path));
  const published = await publishedIn(repository, { start, earliest }, others);
  const unsure = others.filter(({ path }) => !published.has(path));
  return { packages: [...undone, ...unsure], isComplete: below.isComplete };
}

/** One of the folders is the other one, or in it. */
export function isNear(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}

async function changedOf(
  git: Pick<GitRepository, 'readTree' | 'statObjects'>,
  { before, after, directory }: { readonly before: Oid; readonly after: Oid; readonly directory: string },
  { packages, isComplete }: ChangedPackages,
): Promise<ChangedPackages> {
  const was = await packagesAt(git, { commit: before, directory }, packages);
  const is = await packagesAt(git, { commit: after, directory }, packages);
  const both = packages.map(({ path }) => ({ path, before: was.get(path)?.tree, after: is.get(path)?.tree }));
  return { packages: both.filter((one) => one.before !== one.after), isComplete };
}

/** Those packages that were published at one of the commits between, as they were in the last one of them. */
async function publishedIn(
  repository: PackageRepository,
  { start, earliest }: { readonly start: Oid; readonly earliest: Oid },
  packages: readonly ChangedPackage[],
): Promise<ReadonlySet<string>> {
  const { git, index } = repository;
  const commits = new Set<Oid>();
  for (let oid: Oid | undefined = start; packages.length > 0 && oid !== undefined && oid !== earliest; ) {
    commits.add(oid);
    [oid] = (await git.readCommit(oid)).parents;
  }
  const published = new Set<string>();
  for (const { path, after } of packages) {
    const { package: name } = keyAt({ repository, workspace: '' }, path);
    const revisions = index.ofPackage(name).filter((one) => one.revision > 0 && commits.has(one.commit));
    const trees = await git.statObjects(revisions.map((one) => `${one.commit}:${path}`));
    if (trees.some((tree) => tree !== undefined && tree.oid === after)) published.add(path);
  }
  return published;
}
