import type { Approval } from '../../../src/package/model/record/record.ts';
import { approvalsIn } from '../../../src/package/model/record/record.ts';
import { keyOf } from '../../../src/resource/object/object.ts';
import { recordedApprovals } from '../../approval/recorded-approvals.ts';
import type { ReviewedProposal } from '../reviews/apply-reviews.ts';
import type { ReviewVerdicts } from '../reviews/verdicts.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';

/** Comments that are read to find one by which a proposal was approved. */
const MAX_COMMENTS = 1000;

/**
 * Why an approval that was recorded before the merge, by a review or a comment, does not count any more: it would not be accepted now. The approvals
 * that were given through the API, which have no evidence on the host, stay. Undefined if all of them count.
 */
export async function withdrawnApproval(
  { mayApprove, signal }: { readonly mayApprove: MayApprove | undefined; readonly signal: AbortSignal },
  proposal: ReviewedProposal,
  decision: Approval,
  { approvals }: Pick<ReviewVerdicts, 'approvals'>,
): Promise<string | undefined> {
  const { object, review } = proposal;
  for (const { subject, evidence } of countedWith(proposal, decision)) {
    if (evidence === undefined) continue;
    const refuse = (why: string) =>
      `the approval of ${plainLine(subject)} by ${plainLine(evidence)} does not count any more: ${why}`;
    if (review.publishOn === 'approval')
      return refuse(`spec.review.publishOn of the policy ${review.policy} is approval; approve it through Sluice`);
    // Another review of the same user and content is as good.
    if (!approvals.some((one) => one.subject === subject)) {
      if (!review.approvers.some((one) => one.subject === subject))
        return refuse(`spec.review.approvers of the policy ${review.policy} does not list this user`);
      if (!(await isComment(proposal, evidence, signal)))
        return refuse(
          'the review was dismissed or deleted, or a later one took its place; another review of this user is needed, or another proposal',
        );
    }
    if (mayApprove !== undefined && !(await mayApprove(subject, keyOf(object), signal)))
      return refuse('this user may not update packagerevisions/approval in this namespace any more');
  }
  return undefined;
}

/** Where one approval is enough, the others do not matter. */
function countedWith({ evaluation }: ReviewedProposal, decision: Approval): readonly Approval[] {
  const { record, revision, content } = evaluation;
  const { needed, quorums } = recordedApprovals(evaluation);
  if (needed === 1 && quorums.length === 0) return [decision];
  return approvalsIn(record, revision.namespace).filter((one) => one.content === content.content);
}

async function isComment({ forge, pull, evaluation }: ReviewedProposal, url: string, signal: AbortSignal) {
  const known = evaluation.record.commands?.entries ?? [];
  if (known.some((one) => one.url === url)) return true;
  const comments = await forge.comments(pull.number, pull.createdAt, MAX_COMMENTS, signal);
  return comments.some((one) => one.url === url);
}
