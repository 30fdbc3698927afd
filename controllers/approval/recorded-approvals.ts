import { type ApprovalStatus, approvalStatus } from '../../src/package/kernel/approvals.ts';
import { proposerOf } from '../../src/package/kernel/revision-state.ts';
import { approvalsElsewhere, approvalsIn } from '../../src/package/model/record/record.ts';
import type { RevisionEvaluation } from '../../src/package/store/revision-store.ts';

/** The approvals that a proposed revision has and needs, as the kernel counts them. */
export function recordedApprovals({
  revision: { namespace },
  record,
  content,
  policy,
}: RevisionEvaluation): ApprovalStatus {
  const { contributors = [] } = record;
  const given = {
    approvals: approvalsIn(record, namespace),
    approvalsElsewhere: approvalsElsewhere(record, namespace),
  };
  const facts = { content: content.content, proposedBy: proposerOf(record), contributors, ...given };
  return approvalStatus(facts, policy);
}
