import type { Review } from '../../../src/forge/forge.ts';
import { approverOf, REVIEW_ACTOR } from '../../../src/package/model/policy/review-policy.ts';
import { isReplaced } from '../../../src/package/model/record/last-reviews.ts';
import { type Approval, approvalsIn, type WithdrawnApproval } from '../../../src/package/model/record/record.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import { plainLine } from '../text/quote.ts';
import { commitsThatCount, ofProposal } from './reviewed-package.ts';
import type { ReviewContext, ReviewedProposal } from './reviewed-proposal.ts';
import { isApprovalBy, lastReviews, newLastReviews } from './verdicts.ts';

/**
 * Between two reads of the reviews of a pull request that shows no change, in milliseconds, while an approval by one of them waits: Gitea does not
 * show that a review was deleted.
 */
export const REREAD_MS = 600_000;

/** Whether a recorded approval by a review waits to be published. */
export function waitsByReview({ revision, record }: Pick<RevisionEvaluation, 'record' | 'revision'>): boolean {
  const given = approvalsIn(record, revision.namespace);
  return given.some(({ review, withdrawn }) => review !== undefined && withdrawn === undefined);
}

/**
 * Withdraws recorded approvals whose reviews do not stand any more, so that no controller publishes by them after a soak time, a window, a
 * freeze, or the approval of another user. The host is read once more before that. Approvals by other ways stay. The same write records the reviews
 * that replace an approving one, which is not to count again once they are deleted. Returns whether it has changed the record.
 */
export async function withdrawReviews(context: ReviewContext, proposal: ReviewedProposal): Promise<boolean> {
  // What the host has merged is decided by the reviews from before.
  if (proposal.pull.state !== 'open') return false;
  let { reviews } = proposal;
  let ended = await endedApprovals(context, proposal, reviews);
  if (ended.length > 0) {
    const read = await proposal.readState();
    proposal.note(read.pull);
    if (read.pull.state !== 'open') return false;
    ({ reviews } = read);
    ended = await endedApprovals(context, proposal, reviews);
  }
  const { object, evaluation, review, pull } = proposal;
  const { record } = evaluation;
  const given = approvalsIn(record, evaluation.revision.namespace);
  const later = newLastReviews(reviews, review.approvers, { given, known: record.lastReviews });
  if (ended.length === 0 && later.length === 0) return false;
  const lines = ended.map(
    ({ approval: { subject, evidence = '' }, why }) =>
      `the approval of ${plainLine(subject)} by ${plainLine(evidence)} does not count any more: ${why}`,
  );
  await context.store.change(
    keyText(keyOf(object)),
    { withdrawnApprovals: ended, lastReviews: later },
    { actor: { name: REVIEW_ACTOR }, face: 'controller', reason: lines.join('; ') || `reviews of ${pull.url}` },
  );
  for (const line of lines) context.events.record(object, 'Warning', 'ApprovalWithdrawn', line, `withdrawal ${line}`);
  return true;
}

/** The recorded approvals of this namespace that were given by a review, of which no approving review of the same user stands. */
export async function endedApprovals(
  { store, signal }: Pick<ReviewContext, 'store' | 'signal'>,
  { evaluation, pull, review: { policy, publishOn, approvers } }: ReviewedProposal,
  reviews: readonly Review[],
): Promise<WithdrawnApproval[]> {
  const { revision, record, content } = evaluation;
  const given = approvalsIn(record, revision.namespace).filter((one) => isByReview(one, reviews));
  if (given.length === 0) return [];
  if (publishOn === 'approval') {
    const why = `spec.review.publishOn of the policy ${policy} is approval; approve it through Sluice`;
    return given.map((approval) => ({ approval, why }));
  }
  const standing = lastReviews(reviews).filter(
    (one) => one.state === 'approved' && !isReplaced(one, record.lastReviews),
  );
  const ended: WithdrawnApproval[] = [];
  for (const approval of given) {
    const own = standing.filter(({ author }) => approverOf(approvers, author)?.name === approval.subject);
    if (own.some((one) => isApprovalBy(approval, one))) continue;
    // Another review of the same user and content is as good.
    const commits = approval.content === content.content ? own.flatMap(({ commit }) => commit ?? []) : [];
    const repository = store.repositoryOf(revision);
    const reviewed = ofProposal(repository, evaluation, pull, signal);
    if ((await commitsThatCount(repository.git, reviewed, commits)).size > 0) continue;
    const isListed = approvers.some(({ subject }) => subject === approval.subject);
    const why = isListed
      ? 'the review was dismissed or deleted, or a later one took its place; another review is needed'
      : `spec.review.approvers of the policy ${policy} does not list this user`;
    ended.push({ approval, why });
  }
  return ended;
}

/** Earlier versions recorded addresses alone, which on some hosts are those of comments as well. */
function isByReview(approval: Approval, reviews: readonly Review[]): boolean {
  const { review, evidence = '', withdrawn } = approval;
  if (withdrawn !== undefined) return false;
  if (review !== undefined) return true;
  return evidence.includes('#pullrequestreview-') || reviews.some(({ url }) => url === evidence);
}
