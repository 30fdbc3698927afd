import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { commitsBeyond } from '../../../git/objects/merge-bases.ts';

type Commits = Pick<GitRepository, 'readCommit'>;

/**
 * The parent of a merge of Git that was the main branch before it, as far as the parents show that. It is the first one, unless that is the merged head or
 * contains it, as where a user has merged the main branch into another one and has pushed the result to the main branch.
 */
export async function mainParent(git: Commits, parents: readonly [Oid, ...Oid[]], head: Oid): Promise<Oid> {
  const [first] = parents;
  if (parents.includes(head)) return parents.find((one) => one !== head) ?? first;
  for (const one of parents) if (!(await isWithin(git, head, one))) return one;
  return first;
}

/** The last one of some commits that the main branch was at before it was moved to `commit`; those that it does not contain are none. */
export async function latestWithin(
  git: Commits,
  some: readonly (Oid | undefined)[],
  commit: Oid,
): Promise<Oid | undefined> {
  let latest: Oid | undefined;
  for (const one of new Set(some)) {
    if (one === undefined || one === commit || !(await isWithin(git, one, commit))) continue;
    if (latest === undefined || (await isWithin(git, latest, one))) latest = one;
  }
  return latest;
}

/** Whether a commit is `of`, or is in its history near enough. Users choose the times of commits, which do not change the result. */
export async function isWithin(git: Commits, commit: Oid, of: Oid): Promise<boolean> {
  return (await commitsBeyond(git, commit, of))?.has(commit) === false;
}
