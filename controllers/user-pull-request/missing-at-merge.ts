import type { Forge, Review } from '../../src/forge/forge.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { approvalStatus, areEnough } from '../../src/package/kernel/approvals.ts';
import { PUSH_ACTOR } from '../../src/package/model/gates/verdict.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { emptyRecord, type RevisionRecord } from '../../src/package/model/record/record.ts';
import type { PolicySubject } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import { recordWithReviews } from '../../src/package/plan/merged-facts.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { missingUntilMerge } from '../pull-request/checks/missing-until-merge.ts';
import { approvalsAtMerge, reviewsAsCandidates } from '../pull-request/reviews/approvals-at-merge.ts';
import { commitsWithContent, contentAt } from '../pull-request/reviews/same-content.ts';
import { approvedCommits, evaluateReviews } from '../pull-request/reviews/verdicts.ts';
import type { MayApprove } from '../pull-request/rights.ts';

/** Where the approvals of a pull request are read. */
export interface ApprovalReader {
  readonly mayApprove: MayApprove | undefined;
  teamsOf(review: ReviewPolicy): Pick<Forge, 'isTeamMember'>;
  /** The reviews of the pull request, read once. Called only if approvals are missing without them. */
  readReviews(): Promise<readonly Review[]>;
  readonly signal: AbortSignal;
}

/**
 * The approvals that a package lacks even once a user whom the policy maps has merged it, where merges publish. As for proposals, the check does not
 * wait for the last one, which is the merge. Who pushed a branch is unknown.
 */
export async function missingAtMerge(
  { mayApprove, teamsOf, readReviews, signal }: ApprovalReader,
  { git, namespace }: Pick<PackageRepository, 'git' | 'namespace'>,
  {
    subject: { path, name },
    policy,
    head,
    isOfHead,
  }: {
    readonly subject: PolicySubject;
    readonly policy: EffectivePolicy;
    readonly head: Oid;
    /** The merged package is the one of the head. */
    readonly isOfHead: boolean;
  },
): Promise<readonly BlockingRule[]> {
  const { review, forbidSelfApproval } = policy;
  if (review?.publishOn !== 'merge') return [];
  const { approvers } = review;
  const content = isOfHead ? ((await contentAt(git, `${head}:${path}`)) ?? '') : '';
  const record = emptyRecord('');
  const contributors = [{ name: PUSH_ACTOR, face: 'git', since: '' }];
  const statusOf = ({ approvals = [] }: RevisionRecord) =>
    approvalStatus({ content, proposedBy: undefined, contributors, approvals }, policy);
  if (areEnough(statusOf(record), policy)) return [];
  const rights = { forge: teamsOf(review), mayApprove, signal };
  const revision = { namespace, name };
  const reviewed = async () => {
    const reviews = await readReviews();
    const at = { revision: { commit: head, path }, content: { content } };
    const current = await commitsWithContent(git, at, approvedCommits(reviews, approvers));
    const verdicts = evaluateReviews(reviews, approvers, (commit) => current.has(commit));
    return (await approvalsAtMerge(rights, review, reviewsAsCandidates(verdicts), revision)).approvals;
  };
  const { rules } = await missingUntilMerge(rights, review, {
    // Reviews of the head are none of another content.
    ...{ approvals: content === '' ? [] : await reviewed(), revision },
    rules: { forbidSelfApproval, since: undefined },
    statusWith: (given) =>
      statusOf(recordWithReviews(record, given, { content: { content, tree: head }, policy, namespace })),
  });
  return rules;
}
