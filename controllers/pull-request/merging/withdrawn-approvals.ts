import type { Approval } from '../../../src/package/model/record/record.ts';
import { approvalsIn } from '../../../src/package/model/record/record.ts';
import {
  approverOfRecord,
  describeWithdrawal,
  NO_RIGHT,
} from '../../../src/package/model/record/withdrawn-approval.ts';
import { recordedApprovals } from '../../../src/package/store/unmet-rules.ts';
import { keyOf } from '../../../src/resource/object/object.ts';
import { revisionApprover } from '../reviews/approver-at.ts';
import type { ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import type { ReviewVerdicts } from '../reviews/verdicts.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';

/** Comments that are read to find one by which a proposal was approved. */
const MAX_COMMENTS = 1000;

/**
 * Why an approval that was recorded before the merge does not count any more: it would not be accepted now. One through the API, which has no evidence
 * on the host, counts while the user with the groups of the request has the right. Those of controllers and of commands without an API, which grant no
 * rights, stay. Undefined if all of them count.
 */
export async function withdrawnApproval(
  { mayApprove, signal }: { readonly mayApprove: MayApprove | undefined; readonly signal: AbortSignal },
  proposal: ReviewedProposal,
  decision: Approval,
  { approvals }: Pick<ReviewVerdicts, 'approvals'>,
): Promise<string | undefined> {
  const { object, review, forge } = proposal;
  for (const approval of countedWith(proposal, decision)) {
    const { subject, evidence, allGroups } = approval;
    if (evidence === undefined) {
      if (allGroups === undefined || mayApprove === undefined) continue;
      if (await mayApprove(approverOfRecord(approval), keyOf(object), signal)) continue;
      return describeWithdrawal(approval);
    }
    const refuse = (why: string) =>
      `the approval of ${plainLine(subject)} by ${plainLine(evidence)} does not count any more: ${why}`;
    if (review.publishOn === 'approval')
      return refuse(`spec.review.publishOn of the policy ${review.policy} is approval; approve it through Sluice`);
    // Another review of the same user and content is as good.
    const author = approvals.find((one) => one.subject === subject)?.review.author;
    const login = author ?? review.approvers.find((one) => one.subject === subject)?.user;
    if (author === undefined) {
      if (login === undefined)
        return refuse(`spec.review.approvers of the policy ${review.policy} does not list this user`);
      if (!(await isComment(proposal, evidence, signal)))
        return refuse(
          'the review was dismissed or deleted, or a later one took its place; another review of this user is needed, or another proposal',
        );
    }
    const approver = await revisionApprover({ forge, mayApprove, signal }, review, login, keyOf(object));
    if ((await approver?.mayApprove()) !== true) return refuse(NO_RIGHT);
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
