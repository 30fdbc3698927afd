import type { PullRequest, Review } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import type { Gate } from '../../../src/package/model/gates/gates.ts';
import { revisionName } from '../../../src/package/model/identity/identity.ts';
import { REVIEWED_TYPE, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PolicySubject } from '../../../src/package/model/revision/package-revision.ts';
import { recordAt } from '../../../src/package/plan/create/merged-package.ts';
import type { Renderer } from '../../../src/package/plan/ports/renderer.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { renderedChanges } from '../../pull-request/text/resource-changes.ts';
import { isAdopted } from '../adoption/adopted-draft.ts';
import type { PulledPackage } from '../describe-user-pull.ts';
import { reviewedStatus } from '../merges/merged-package-facts.ts';
import { type BranchStart, changesOfBranch } from './branch-changes.ts';
import { type ChangedPackage, packagesAt, packageTree } from './changed-packages.ts';
import { BranchLine } from './earlier-conditions.ts';
import { type JudgedPackage, judgePackage } from './judge-package.ts';
import { type MergedPackage, mergePackage } from './merge-package.ts';
import { type ApprovalReader, reviewedAtMerge } from './reviewed-at-merge.ts';
import { rulesAtMerge, selectedPart } from './rules-at-merge.ts';

/** Packages of one pull request that are judged. */
export const MAX_PACKAGES = 20;

/** The head of a pull request in the mirror of its repository. */
export interface PulledHead {
  readonly commit: Oid;
  /** The commit is the tip of a branch of the repository: a user who may push has pushed it. */
  readonly isPushed: boolean;
}

/**
 * Finds the head of a pull request, and fetches it where it is in no branch of the repository, as for forks. Undefined if it has moved on meanwhile.
 */
export async function headOf(
  repository: PackageRepository,
  { number, head }: PullRequest,
  signal: AbortSignal,
): Promise<PulledHead | undefined> {
  if (!isOid(head.commit)) return undefined;
  const { commit } = head;
  const isTip = async () =>
    head.isSameRepository && (await repository.git.resolveRef(`refs/heads/${head.branch}`)) === commit;
  if (await isTip()) return { commit, isPushed: true };
  // The host reports a push before it was fetched.
  if (head.isSameRepository && repository.isMirror) {
    await repository.catchUp(signal, 'branches');
    if (await isTip()) return { commit, isPushed: true };
  }
  return (await repository.untracked.fetchPull(number, signal)) === commit ? { commit, isPushed: false } : undefined;
}

export interface PulledPackages {
  /** Of which one policy reviews, and lets Sluice check them. */
  readonly packages: readonly PulledPackage[];
  /** Where each of all changed packages is on the main branch, to see whether that moves. */
  readonly onMain: ReadonlyMap<string, Oid | undefined>;
  readonly omitted: readonly string[];
}

export interface PullContext {
  /** Packages that are judged at most. Default: as many as of one pull request. */
  readonly most?: number;
  readonly repository: PackageRepository;
  readonly workspace: string;
  readonly head: PulledHead;
  readonly mainHead: Oid;
  /** Undefined if it has no common commit with the main branch that is near enough. */
  readonly start: BranchStart | undefined;
  /** The commit of a merge queue whose packages are judged, in place of those that the merge of the head would make. */
  readonly merged?: Oid;
  /** Runs what the branch may run. */
  readonly renderer: Renderer | undefined;
  readonly approvals: ApprovalReader;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Judges the packages that a branch changes, as they would be after the merge, without those that the main branch has so already. */
export async function readPulledPackages(context: PullContext): Promise<PulledPackages> {
  const { repository, head, mainHead, start, merged: mergedCommit, renderer, approvals, now, signal } = context;
  const { most = MAX_PACKAGES } = context;
  const { git, layout, namespace } = repository;
  await repository.refreshPolicies();
  if (start === undefined) {
    const omitted = ['It has no common commit with the main branch that is near enough; rebase the branch'];
    return { packages: [], onMain: new Map(), omitted };
  }
  const { directory } = layout;
  const range = { after: head.commit, directory };
  const { packages: changed, isComplete } = await changesOfBranch(git, start, range);
  const omitted: string[] = [];
  if (!isComplete)
    omitted.push(
      'The branch changes too many folders, or too deep or malformed ones, so that not all of its packages are known; split it',
    );
  const folders = async (commit: Oid) => {
    const stats = await git.statObjects(changed.map(({ path }) => `${commit}:${path}`));
    return new Map(changed.map(({ path }, at) => [path, stats[at]?.oid]));
  };
  const [onMain, atStart] = [await folders(mainHead), await folders(start.bases[0])];
  const present = await packagesAt(git, { commit: mainHead, directory }, changed);
  const inMerge =
    mergedCommit === undefined ? undefined : await packagesAt(git, { commit: mergedCommit, directory }, changed);
  const wantedTree = ({ path, after }: ChangedPackage) => (inMerge === undefined ? after : inMerge.get(path)?.tree);
  // A folder that is no package there yet is judged as a whole, also where it is the same.
  const wanted = changed.filter((one) => wantedTree(one) !== present.get(one.path)?.tree);
  if (wanted.length > most)
    omitted.push(`It changes ${wanted.length} packages, of which ${wanted.length - most} are not checked; split it`);
  const packages: PulledPackage[] = [];
  const line = new BranchLine(git, head.commit, signal);
  for (const one of wanted.slice(0, most)) {
    signal.throwIfAborted();
    const found = await judge(one, onMain.get(one.path));
    if (found !== undefined) packages.push(found);
  }
  return { packages, onMain, omitted };

  async function judge(one: ChangedPackage, main: Oid | undefined): Promise<PulledPackage | undefined> {
    const { path, before, after } = one;
    const key = keyAt(context, path);
    let subject: PolicySubject = {
      key,
      name: revisionName(key),
      namespace,
      path,
      kptfile: undefined,
      record: undefined,
    };
    let policy = repository.policyFor(subject);
    let judged: JudgedPackage | undefined;
    let onMain: MergedPackage['onMain'];
    const tree = wantedTree(one);
    let isOfHead = tree === after;
    if (tree !== undefined) {
      const base = inMerge === undefined ? (before ?? atStart.get(path)) : main;
      const isNew = packageTree(present.get(path)) === undefined;
      const merged = await mergePackage(git, { base, main, head: tree, isNew });
      if (merged.changed.size === 0 && merged.findings.length === 0) return undefined;
      onMain = merged.onMain;
      isOfHead &&= merged.isOfHead;
      judged = await judgePackage(merged, {
        ...{ namespace, renderer, mayIssue: head.isPushed, isOfHead, now, signal },
        branch: { line, path },
        // The commit of a queue comes after what is merged before it there.
        before: async () => {
          const found = await recordAt(repository, { package: key.package, commit: mergedCommit ?? mainHead });
          return found && { ...found, files: inMerge === undefined ? merged.onMain : merged.files };
        },
        policyFor: (kptfile) => {
          subject = { ...subject, kptfile: selectedPart(kptfile) };
          policy = repository.policyFor(subject);
          return policy;
        },
      });
    }
    const { review, reviewProblem } = policy;
    // Which of several policies applies is unknown: none of them must pass over it.
    if (reviewProblem !== undefined) omitted.push(`The package ${path} is not checked: ${reviewProblem}`);
    if (review === undefined || !isChecked(review)) return undefined;
    const draft = await draftOf(context, path);
    const changes =
      judged === undefined || onMain === undefined ? undefined : await renderedChanges(onMain, judged.files, signal);
    // What is removed is not published.
    if (judged === undefined) return { repository, path, review, judged, changes, draft };
    const atMerge = rulesAtMerge(repository, subject, now);
    const of = { subject, policy, head: head.commit, main: mainHead, gates: judged.gates, isOfHead };
    const { missing, changesRequested } = await reviewedAtMerge(approvals, repository, of);
    if (changesRequested === undefined || changesRequested.length > 0)
      judged = { ...judged, gates: [...judged.gates, reviewedGate(review.policy, changesRequested)] };
    if (review.publishOn !== 'approval' && atMerge.problem !== undefined)
      omitted.push(`The merge will not publish the package ${path}: ${atMerge.problem}`);
    return { repository, path, review, judged, atMerge, missing, changes, draft };
  }
}

/** As a proposal shows it, where the condition is recorded. */
function reviewedGate(policy: string, changesRequested: readonly Review[] | undefined): Gate {
  const status = reviewedStatus(changesRequested);
  return {
    ...{ type: REVIEWED_TYPE, requiredBy: [`policy ${policy}`], approveOnly: true, state: 'NotTrue' },
    condition: { type: REVIEWED_TYPE, ...status },
    ...{ verdict: undefined, changed: [], since: undefined, explanation: status.message },
  };
}

/** The name of the draft that a package was adopted as. */
export async function draftOf(
  context: Pick<PullContext, 'head' | 'repository' | 'signal' | 'workspace'>,
  path: string,
): Promise<string | undefined> {
  const { repository, head, signal } = context;
  const found = repository.index.get(revisionName(keyAt(context, path)));
  return found !== undefined && (await isAdopted(repository, found, head.commit, signal)) ? found.name : undefined;
}

/** Whether a policy has the pull requests of users checked, and published once they are merged. */
export function isChecked({ userPullRequests }: ReviewPolicy): boolean {
  return userPullRequests !== 'ignore';
}

/** The revision that a package would be adopted as. */
export function keyAt({ repository, workspace }: Pick<PullContext, 'repository' | 'workspace'>, path: string) {
  const { directory } = repository.layout;
  const name = directory === '' ? path : path.slice(directory.length + 1);
  return { repository: repository.repository, package: name, workspace };
}
