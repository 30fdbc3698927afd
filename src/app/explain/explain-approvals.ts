import { type ApprovalStatus, approvalStatus } from '../../package/kernel/approvals.ts';
import { proposerOf } from '../../package/kernel/revision-state.ts';
import { PUSH_ACTOR } from '../../package/model/verdict.ts';
import type { Judgement } from '../../package/store/revision-store.ts';
import type { ApprovalExplanation, Reason } from './explanation.ts';

/** Which approvals a proposed revision has and needs, as the kernel counts them. */
export function approvalStatusOf({ record, content, policy }: Judgement): ApprovalStatus {
  const { contributors = [], approvals = [] } = record;
  return approvalStatus({ content: content.content, proposedBy: proposerOf(record), contributors, approvals }, policy);
}

export function explainApprovals(judgement: Judgement): ApprovalExplanation {
  const { needed, given, barred } = approvalStatusOf(judgement);
  return {
    needed,
    given: given.map(({ subject, face, at }) => ({ subject, face, at })),
    barred: barred
      .filter(({ name }) => name !== PUSH_ACTOR)
      .map(({ name, because }) => ({ name, because: because === 'proposed' ? 'proposed it' : 'changed its content' })),
  };
}

/** Where one approval is not enough, why, and who gave the ones that there are. */
export function approvalReasons(judgement: Judgement): Reason[] {
  const { needed, given, isUnknown } = approvalStatusOf(judgement);
  if (needed < 2) return [];
  const why = isUnknown ? 'content or the proposal came by a git push of an unknown person' : 'a policy says so';
  const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
  const message = `${given.length} of ${needed} approvals recorded${by === '' ? '' : ` (${by})`}; ${needed} people have to approve it, since ${why}`;
  return [{ reason: 'ApprovalsNeeded', message }];
}
