import type { Condition } from '../../../../kptfile-schema/index.ts';
import { refuseBlocked } from '../../kernel/approver.ts';
import { blockingRules, nextRuleChange } from '../../kernel/blocking-rules.ts';
import { proposalOf } from '../../kernel/revision-state.ts';
import { APPROVAL_ALLOWED_TYPE } from '../../model/gates/ready-type.ts';
import { freezesAt } from '../../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../../model/policy/policy.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import { lastPublishedAt } from '../../plan/read-state.ts';
import type { RevisionEvaluation } from '../../store/revision-store.ts';

/** Rules that a message names. */
const MAX_NAMED_RULES = 10;
/** Milliseconds after which what is in flight is counted again for the condition: no event of the revision reports that. */
const COUNT_AGAIN_MS = 60_000;

export interface ApprovalCondition {
  readonly condition: Condition;
  /** When it may change by itself, milliseconds since the epoch. */
  readonly until?: number;
}

/** True if the revision shows the condition: it is proposed, and there are rules for its approval. */
export function hasApprovalCondition({ lifecycle }: PackageRevision, policy: EffectivePolicy, now: number): boolean {
  return lifecycle === 'Proposed' && (policy.approvalRules.length > 0 || freezesAt(policy.freezes, now).length > 0);
}

/**
 * The condition `sluice.dev/ApprovalAllowed`: which rules block every approval of a proposed revision, since when, until when, and who can
 * resolve it. `siblings` are the revisions of its package. Undefined without rules.
 */
export function approvalCondition(
  { revision, record, policy, at }: Pick<RevisionEvaluation, 'revision' | 'record' | 'policy' | 'at'>,
  siblings: readonly PackageRevision[],
): ApprovalCondition | undefined {
  const now = Date.parse(at);
  if (!hasApprovalCondition(revision, policy, now)) return undefined;
  const facts = { name: revision.name, proposal: proposalOf(record), lastPublishedAt: lastPublishedAt(siblings) };
  const blocking = blockingRules(facts, policy, at);
  const counted = policy.approvalRules.some(({ maxInFlight }) => maxInFlight !== undefined);
  const next = Math.min(
    nextRuleChange(policy, blocking, now) ?? Number.POSITIVE_INFINITY,
    counted ? now + COUNT_AGAIN_MS : Number.POSITIVE_INFINITY,
  );
  const until = Number.isFinite(next) ? { until: next } : {};
  const type = APPROVAL_ALLOWED_TYPE;
  const [first] = blocking;
  if (first === undefined)
    return {
      condition: { type, status: 'True', reason: 'NoRuleBlocks', message: 'no rule blocks an approval' },
      ...until,
    };
  const more = blocking.length - MAX_NAMED_RULES;
  const texts = [
    ...blocking.slice(0, MAX_NAMED_RULES).map((rule) => refuseBlocked(rule).message),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
  return { condition: { type, status: 'False', reason: first.rule, message: texts.join('; ') }, ...until };
}
