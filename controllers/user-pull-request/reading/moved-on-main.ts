import type { Oid } from '../../../src/git/git-repository.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RulesAtMerge } from '../judging/rules-at-merge.ts';

/** What was checked last of a pull request. */
export interface CheckedPackages {
  readonly head: Oid;
  /** The last commit of the main branch whose trees are those of `onMain`. */
  mainHead: Oid;
  /** What decides about its packages on the main branch, by path: the trees of those that it changes, and files and folders beside them. */
  readonly onMain: ReadonlyMap<string, Oid | undefined>;
  /** The rules for a merge of its packages that the check shows. */
  readonly rules: readonly RulesAtMerge[];
}

/** Numbers of the pull requests for which the main branch is no longer as when they were checked, where it matters: one request to Git for all. */
export async function movedOnMain(
  { index, git }: PackageRepository,
  open: ReadonlyMap<number, { readonly checked?: CheckedPackages }>,
): Promise<readonly number[]> {
  const { mainHead } = index;
  if (mainHead === undefined) return [];
  const outdated = [...open].filter(
    ([, { checked }]) => checked !== undefined && checked.mainHead !== mainHead && checked.onMain.size > 0,
  );
  const paths = [...new Set(outdated.flatMap(([, { checked }]) => [...(checked?.onMain.keys() ?? [])]))];
  const stats = await git.statObjects(paths.map((path) => `${mainHead}:${path}`));
  const trees = new Map(paths.map((path, at) => [path, stats[at]?.oid]));
  const moved: number[] = [];
  for (const [number, { checked }] of outdated) {
    if (checked === undefined) continue;
    if ([...checked.onMain].some(([path, tree]) => trees.get(path) !== tree)) moved.push(number);
    // The next poll need not look at them again.
    else checked.mainHead = mainHead;
  }
  return moved;
}
