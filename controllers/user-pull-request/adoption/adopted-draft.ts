import type { Oid } from '../../../src/git/git-repository.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import { isPublished, type PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

/** Annotations of an adopted draft: address of its pull request, and the commit of that which it began at. */
export const PULL_ANNOTATION = 'sluice.dev/pull-request';
export const PULL_COMMIT_ANNOTATION = 'sluice.dev/pull-request-commit';

/**
 * Whether a revision with the name of an adopted draft is one: it has the content of the head, or commits that only the pull request has. Each user
 * who may create or push drafts can give another one that name before.
 */
export async function isAdopted(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  revision: PackageRevision,
  head: Oid,
  signal?: AbortSignal,
): Promise<boolean> {
  // Its commits are on the main branch now. It was approved as what it is.
  if (isPublished(revision)) return revision.record?.annotations?.[PULL_ANNOTATION] !== undefined;
  const [wanted] = await git.statObjects([`${head}:${revision.path}`]);
  if (wanted !== undefined && wanted.oid === revision.tip.tree) return true;
  const common = await mergeBase(git, revision.commit, head, signal);
  if (common === undefined || index.mainHead === undefined) return false;
  return (await mergeBase(git, common, index.mainHead, signal)) !== common;
}
