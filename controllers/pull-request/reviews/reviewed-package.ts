import { gatesOf } from '../../../kptfile-schema/index.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { keptMergeBases } from '../../../src/git/objects/kept-merge-bases.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { Gate } from '../../../src/package/model/gates/gates.ts';
import { REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import { mainParent } from '../../../src/package/plan/records/main-before-merge.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { membersAt } from '../batch/batch-branch.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { hasCommit } from '../merged/fetch-head.ts';
import { contentAt, packageAt } from './same-content.ts';

/** What reviews of a package have to be of to count. */
export interface ReviewedPackage {
  readonly path: string;
  /** As `contentAt` returns it. */
  readonly content: string;
  /** The types of the gates that it has now. */
  readonly gates: ReadonlySet<string>;
  /** A commit with the package as it is now, whose reviews count whatever it is like. */
  readonly commit?: Oid;
  /** Whether a pull request with this head shows the package. */
  isShown(commit: Oid): Promise<boolean>;
}

/**
 * Of these commits that users reviewed, those whose reviews count for a package: they have its present content, a pull request with that head shows
 * the package, and each gate of the Kptfile there is still one, so that none is removed unseen. A gate that is added, or opens, outdates no review. A
 * commit that is not in the repository any more is none of them.
 */
export async function commitsThatCount(
  git: GitRepository,
  { path, content, gates, commit: present, isShown }: ReviewedPackage,
  commits: Iterable<string>,
): Promise<ReadonlySet<string>> {
  const counted = new Set<string>();
  for (const commit of new Set(commits)) {
    if (!isOid(commit)) continue;
    const there = commit === present ? undefined : await packageAt(git, `${commit}:${path}`);
    const isSame = there?.content === content && there.gates.every((type) => gates.has(type));
    if (commit === present || (isSame && (await isShown(commit)))) counted.add(commit);
  }
  return counted;
}

/** Of a pull request of a user, in which the reviewed commit has to change the package. `main` is the main branch before the merge. */
export function ofUserPull(
  git: GitRepository,
  { gates, ...at }: Pick<ReviewedPackage, 'path' | 'content'> & { readonly main: Oid; readonly gates: readonly Gate[] },
  signal: AbortSignal,
): ReviewedPackage {
  // `gates` of a pull request of a user leave out the one about reviews, which no push opens.
  const types = new Set([...gates.map(({ type }) => type), REVIEWED_TYPE]);
  return { ...at, gates: types, isShown: (commit) => isChangedBy(git, commit, at, signal) };
}

/**
 * Of a proposal. The reviewed commit of a pull request that several share has to list it, and to change its package, unless the pull request is
 * open and the main branch has the package as it is there.
 */
export function ofProposal(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  { revision, content, gates }: Pick<RevisionEvaluation, 'revision' | 'content' | 'gates'>,
  pull: Pick<PullRequest, 'head' | 'merged' | 'state'>,
  signal: AbortSignal,
): ReviewedPackage {
  const { path, commit, kptfile, name } = revision;
  const types = new Set([...gates.map(({ type }) => type), ...(kptfile === undefined ? [] : gatesOf(kptfile))]);
  const isShown = async (reviewed: Oid) => {
    if (!isBatchBranch(pull.head.branch)) return true;
    if ((await membersAt(git, reviewed))?.some((one) => one.name === name) !== true) return false;
    const isMerged = pull.state === 'merged';
    const main = isMerged ? await mainBefore(git, pull) : index.mainHead;
    if (main === undefined) return false;
    // After a rebase of several commits, `main` can be one of these.
    if (!isMerged && (await isAsOn(git, main, `${reviewed}:${path}`, path))) return true;
    return isChangedBy(git, reviewed, { path, main }, signal);
  };
  return { path, content: content.content, gates: types, commit, isShown };
}

/** Whether the main branch has this very package: the proposal is an unchanged copy of the published one. */
async function isAsOn(git: GitRepository, main: Oid, specification: string, path: string): Promise<boolean> {
  const [there, present] = await git.statObjects([specification, `${main}:${path}`]);
  return there !== undefined && there.oid === present?.oid;
}

/** The main branch before a merge. */
async function mainBefore(
  git: GitRepository,
  { head, merged }: Pick<PullRequest, 'head' | 'merged'>,
): Promise<Oid | undefined> {
  const { commit = '', base = '' } = merged ?? {};
  if (!(await hasCommit({ git }, commit))) return undefined;
  // A branch that the main branch was moved to has no commit of its own for the merge.
  if (commit === head.commit && (await hasCommit({ git }, base))) return base;
  const [first, ...others] = (await git.readCommit(commit)).parents;
  return first === undefined || others.length === 0 ? first : mainParent(git, [first, ...others], head.commit);
}

/**
 * Whether a branch with this head changes the package at `path`, as its pull request shows it: since each of the last commits that the main branch
 * and this one have in common, as hosts compare with one of them. Where it changes conditions and gates alone, it is no approval of a content
 * that `main` has no more.
 */
async function isChangedBy(
  git: GitRepository,
  commit: Oid,
  { path, main }: { readonly path: string; readonly main: Oid },
  signal: AbortSignal,
): Promise<boolean> {
  const bases = await keptMergeBases(git, main, commit, signal);
  if (bases.length === 0) return false;
  const [there, ...before] = await git.statObjects([commit, ...bases].map((oid) => `${oid}:${path}`));
  if (there === undefined || before.some((one) => one?.oid === there.oid)) return false;
  const content = await contentAt(git, there.oid);
  for (const one of before)
    if (one !== undefined && (await contentAt(git, one.oid)) === content)
      return (await contentAt(git, `${main}:${path}`)) === content;
  return true;
}
