import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { keptMergeBases } from '../../../src/git/objects/kept-merge-bases.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import {
  type ChangedPackage,
  type ChangedPackages,
  changedPackages,
  packagesAt,
  packageTree,
} from './changed-packages.ts';

/** What a branch has in common with the main branch. */
export interface BranchStart {
  /** Several where each of them had merged the other one before, as with a long-lived branch; the newest first. */
  readonly bases: readonly [Oid, ...Oid[]];
  /** A commit that all of several contain. */
  readonly common: Oid | undefined;
}

/** Undefined if there is none that is near enough. */
export async function startOfBranch(
  git: Pick<GitRepository, 'readCommit'>,
  { main, head }: { readonly main: Oid; readonly head: Oid },
  signal: AbortSignal,
): Promise<BranchStart | undefined> {
  const [newest, ...others] = await keptMergeBases(git, main, head, signal);
  if (newest === undefined) return undefined;
  let common: Oid | undefined = newest;
  for (const one of others) common = common && (await mergeBase(git, common, one, signal));
  return { bases: [newest, ...others], common };
}

/**
 * The packages that a branch changes, as a merge of Git finds them: of several bases, what one of them has changed since the commit before all of them
 * is no change of the branch. Where several have changed a package in different ways, it is compared with the newest.
 */
export async function changesOfBranch(
  git: Pick<GitRepository, 'readTree' | 'statObjects'>,
  { bases, common }: BranchStart,
  { after: head, directory }: { readonly after: Oid; readonly directory: string },
): Promise<ChangedPackages> {
  const [newest, ...others] = bases;
  const first = await changedPackages(git, { before: newest, after: head, directory });
  if (others.length === 0) return first;
  const all = [first];
  for (const before of others) all.push(await changedPackages(git, { before, after: head, directory }));
  const paths = [...new Set(all.flatMap(({ packages }) => packages.map(({ path }) => path)))].sort();
  const some = paths.map((path) => ({ path }));
  const at = (commit: Oid) => packagesAt(git, { commit, directory }, some);
  const after = await at(head);
  const start = common === undefined ? undefined : await at(common);
  const before: Awaited<ReturnType<typeof at>>[] = [];
  for (const base of bases) before.push(await at(base));
  const packages = paths.map((path): ChangedPackage => {
    const there = before.map((one) => packageTree(one.get(path)));
    const began = packageTree(start?.get(path));
    const changed = start === undefined ? there : there.filter((tree) => tree !== began);
    return { path, before: changed.length === 0 ? began : changed[0], after: after.get(path)?.tree };
  });
  return {
    packages: packages.filter((one) => one.before !== one.after),
    isComplete: all.every(({ isComplete }) => isComplete),
  };
}
