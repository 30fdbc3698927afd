import { type ApprovalStatus, approvalStatus } from '../kernel/approvals.ts';
import { blockingRules, lostRecord } from '../kernel/blocking-rules.ts';
import { missingApprovals } from '../kernel/missing-approvals.ts';
import { proposalOf, proposerOf } from '../kernel/revision-state.ts';
import { approvalsElsewhere, approvalsIn } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { BlockingRule } from '../model/revision/revision-state.ts';
import { lastPublishedAt } from '../plan/read-state.ts';
import type { RevisionEvaluation } from './evaluate-revision.ts';

/** The plans that hold proposed revisions, so that no other controller approves these. */
export interface ApprovalHolds {
  /** True if a plan may hold the revision; reads nothing. */
  mayHold(revision: PackageRevision): boolean;
  /** The hold of a proposed revision; undefined if there is none. */
  holdOf(revision: PackageRevision): Promise<BlockingRule | undefined>;
  /** The same for a decision: the plans are read again. */
  readHold(revision: PackageRevision): Promise<BlockingRule | undefined>;
}

/** The rules that keep a proposed revision from being published. */
export interface UnmetRules {
  /** Those that refuse every approval now. */
  readonly blocking: readonly BlockingRule[];
  /** All of them, also missing approvals, which an approval meets, and the hold of a plan, which stops controllers alone. */
  readonly all: readonly BlockingRule[];
}

/** Evaluates all rules for the approval of a proposed revision at a time. `siblings` are the revisions of its package. */
export function unmetRules(
  evaluation: Pick<RevisionEvaluation, 'revision' | 'record' | 'content' | 'policy'>,
  siblings: readonly PackageRevision[],
  at: string,
  hold?: BlockingRule,
): UnmetRules {
  const { revision, record, policy } = evaluation;
  const proposal = proposalOf(record);
  const facts = { name: revision.name, proposal, lastPublishedAt: lastPublishedAt(siblings) };
  const lost = lostRecord(revision.name, record);
  const blocking = [...(lost === undefined ? [] : [lost]), ...blockingRules(facts, policy, at)];
  const missing = missingApprovals(recordedApprovals(evaluation), policy.forbidSelfApproval, proposal?.at);
  return { blocking, all: [...blocking, ...missing, ...(hold === undefined ? [] : [hold])] };
}

/** The approvals that a proposed revision has and needs, as the kernel counts them. */
export function recordedApprovals({
  revision: { namespace },
  record,
  content,
  policy,
}: Pick<RevisionEvaluation, 'revision' | 'record' | 'content' | 'policy'>): ApprovalStatus {
  const { contributors = [] } = record;
  const given = {
    approvals: approvalsIn(record, namespace),
    approvalsElsewhere: approvalsElsewhere(record, namespace),
  };
  const facts = { content: content.content, proposedBy: proposerOf(record), contributors, ...given };
  return approvalStatus(facts, policy);
}
