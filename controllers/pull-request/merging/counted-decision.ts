import { areEnough } from '../../../src/package/kernel/approvals.ts';
import { type Approval, approvalsIn, type Decision } from '../../../src/package/model/record/record.ts';
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

export const NOT_DECIDED = 'no approval of what it publishes has been decided on';

/** The decision by which a proposal is merged, or why there is none. */
export type CountedDecision =
  | { readonly decision: Decision; readonly problem?: undefined }
  | { readonly decision?: undefined; readonly problem: string };

/**
 * The first of these decisions that would be accepted now, if the other recorded approvals of which that is true are enough with it. One through the
 * API, which has no evidence on the host, counts while the user with the groups of the request has the right. Those of controllers and of commands
 * without an API, which grant no rights, stay.
 */
export async function countedDecision(
  { mayApprove, signal }: { readonly mayApprove: MayApprove | undefined; readonly signal: AbortSignal },
  proposal: ReviewedProposal,
  decisions: readonly Decision[],
  { approvals }: Pick<ReviewVerdicts, 'approvals'>,
): Promise<CountedDecision> {
  const { object, review, forge, evaluation } = proposal;
  const { record, revision, content, policy } = evaluation;
  const { needed, quorums } = recordedApprovals(evaluation);
  const isOneEnough = needed === 1 && quorums.length === 0;
  const known = new Map<Approval, string | undefined>();
  let first: string | undefined;
  for (const decision of decisions) {
    const problem = (await problemOf(decision)) ?? (isOneEnough ? undefined : await missingWith(decision));
    if (problem === undefined) return { decision };
    first ??= problem;
  }
  return { problem: first ?? NOT_DECIDED };

  /** Why too few of the other approvals count. Where all of them do, the kernel decides whether they are enough. */
  async function missingWith(decision: Decision): Promise<string | undefined> {
    const ended = new Map<Approval, string>();
    for (const one of approvalsIn(record, revision.namespace)) {
      if (one === decision || one.content !== content.content || one.withdrawn !== undefined) continue;
      const problem = await problemOf(one);
      if (problem !== undefined) ended.set(one, problem);
    }
    const [why] = ended.values();
    const { withdrawn: _withdrawn, ...own } = decision;
    const others = (record.approvals ?? []).filter((one) => one !== decision && !ended.has(one));
    const status = recordedApprovals({ ...evaluation, record: { ...record, approvals: [...others, own] } });
    return areEnough(status, policy) ? undefined : why;
  }

  /** Why an approval would not be accepted now. */
  async function problemOf(approval: Approval): Promise<string | undefined> {
    if (!known.has(approval)) known.set(approval, await readProblem(approval));
    return known.get(approval);
  }

  async function readProblem(approval: Approval): Promise<string | undefined> {
    const { subject, evidence, allGroups } = approval;
    if (evidence === undefined) {
      if (allGroups === undefined || mayApprove === undefined) return undefined;
      if (await mayApprove(approverOfRecord(approval), keyOf(object), signal)) return undefined;
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
    return (await approver?.mayApprove()) === true ? undefined : refuse(NO_RIGHT);
  }
}

async function isComment({ forge, pull, evaluation }: ReviewedProposal, url: string, signal: AbortSignal) {
  const known = evaluation.record.commands?.entries ?? [];
  if (known.some((one) => one.url === url)) return true;
  const comments = await forge.comments(pull.number, pull.createdAt, MAX_COMMENTS, signal);
  return comments.some((one) => one.url === url);
}
