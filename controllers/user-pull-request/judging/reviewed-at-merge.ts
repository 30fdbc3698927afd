import type { Forge, Review } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { approvalStatus, areEnough } from '../../../src/package/kernel/approvals.ts';
import { missingApprovals } from '../../../src/package/kernel/missing-approvals.ts';
import type { Gate } from '../../../src/package/model/gates/gates.ts';
import { PUSH_ACTOR } from '../../../src/package/model/gates/verdict.ts';
import type { EffectivePolicy } from '../../../src/package/model/policy/policy.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { emptyRecord, type RevisionRecord } from '../../../src/package/model/record/record.ts';
import type { PolicySubject } from '../../../src/package/model/revision/package-revision.ts';
import type { BlockingRule, ReviewApproval } from '../../../src/package/model/revision/revision-state.ts';
import { recordWithReviews } from '../../../src/package/plan/merged-facts.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { missingUntilMerge } from '../../pull-request/checks/missing-until-merge.ts';
import { approvalsAtMerge, givenBy, reviewsAsCandidates } from '../../pull-request/reviews/approvals-at-merge.ts';
import { mappedRights, noApproverRules } from '../../pull-request/reviews/mapped-rights.ts';
import { commitsThatCount, ofUserPull } from '../../pull-request/reviews/reviewed-package.ts';
import { contentAt } from '../../pull-request/reviews/same-content.ts';
import { approvedCommits, evaluateReviews } from '../../pull-request/reviews/verdicts.ts';
import type { MayApprove } from '../../pull-request/rights.ts';

/** Where the approvals of a pull request are read. */
export interface ApprovalReader {
  readonly mayApprove: MayApprove | undefined;
  /** The same with answers that are known. */
  readonly knownRights: MayApprove | undefined;
  teamsOf(review: ReviewPolicy): Pick<Forge, 'isTeamMember'>;
  /** The reviews of the pull request, read once. Undefined where there are too many. Called only if they can decide something. */
  readReviews(): Promise<readonly Review[] | undefined>;
  /** Why no merge is an approval; undefined where one can be. */
  readonly unsureMerger: string | undefined;
  readonly signal: AbortSignal;
}

/** What reviews decide about the merge of a package. */
export interface ReviewedMerge {
  /** The approvals that it lacks. */
  readonly missing: readonly BlockingRule[];
  /** Undefined where there are too many reviews to know it. */
  readonly changesRequested: readonly Review[] | undefined;
}

/**
 * Where merges publish: who requests changes, and the approvals that a package lacks even once a user whom the policy maps has merged it, unless the
 * policy has reviews alone approve. As for proposals, the check does not wait for the last one, which is the merge. Who pushed a branch is unknown.
 */
export async function reviewedAtMerge(
  { mayApprove, knownRights, teamsOf, readReviews, unsureMerger, signal }: ApprovalReader,
  { git, namespace }: Pick<PackageRepository, 'git' | 'namespace'>,
  {
    subject: { path, name },
    policy,
    head,
    main,
    gates,
    isOfHead,
  }: {
    readonly subject: PolicySubject;
    readonly policy: EffectivePolicy;
    readonly head: Oid;
    /** The head of the main branch. */
    readonly main: Oid;
    /** Those of the merged package. */
    readonly gates: readonly Gate[];
    /** The merged package is the one of the head. */
    readonly isOfHead: boolean;
  },
): Promise<ReviewedMerge> {
  const { review, forbidSelfApproval } = policy;
  if (review === undefined || review.publishOn === 'approval') return { missing: [], changesRequested: [] };
  const { approvers } = review;
  const content = isOfHead ? ((await contentAt(git, `${head}:${path}`)) ?? '') : '';
  const record = emptyRecord('');
  const contributors = [{ name: PUSH_ACTOR, face: 'git', since: '' }];
  const statusOf = ({ approvals = [] }: RevisionRecord) =>
    approvalStatus({ content, proposedBy: undefined, contributors, approvals }, policy);
  const rights = { forge: teamsOf(review), mayApprove, knownRights, signal };
  const revision = { namespace, name };
  const read = approvers.length === 0 ? [] : await readReviews();
  const reviews = read ?? [];
  const reviewed = ofUserPull(git, { path, main, content, gates }, signal);
  const current = await commitsThatCount(git, reviewed, approvedCommits(reviews, approvers));
  const verdicts = evaluateReviews(reviews, approvers, (commit) => current.has(commit));
  const changesRequested = read && verdicts.changesRequested;
  const isByReview = review.publishOn === 'review';
  const without = noApproverRules(review, await mappedRights(rights, review, revision), namespace);
  if (without.length > 0) return { missing: without, changesRequested };
  if (!isByReview && unsureMerger === undefined && areEnough(statusOf(record), policy))
    return { missing: [], changesRequested };
  // Reviews of the head are none of another content.
  const approvals =
    content === '' ? [] : (await approvalsAtMerge(rights, review, reviewsAsCandidates(verdicts), revision)).approvals;
  const statusWith = (given: readonly ReviewApproval[]) =>
    statusOf(recordWithReviews(record, given, { content: { content, tree: head }, policy, namespace }));
  if (isByReview) {
    const missing = missingApprovals(statusWith(approvals.map(givenBy)), forbidSelfApproval, undefined);
    return { missing: missing.length > 0 || approvals.length > 0 ? missing : [noReview(review)], changesRequested };
  }
  const { rules } = await missingUntilMerge(rights, review, {
    ...{ approvals, revision, rules: { forbidSelfApproval, since: undefined }, unsureMerger, statusWith },
  });
  return { missing: rules, changesRequested };
}

function noReview({ policy, approvers }: ReviewPolicy): BlockingRule {
  return {
    ...{ rule: 'Quorum', policy },
    message: `policy ${policy} has approving reviews publish, and no user whom its spec.review.approvers lists approves this content`,
    resolvedBy: approvers.length === 0 ? 'no user: the list is empty' : 'a review of one of these users',
  };
}
