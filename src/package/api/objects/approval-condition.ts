import type { Condition } from '../../../../kptfile-schema/index.ts';
import { refuseBlocked } from '../../kernel/approver.ts';
import { nextRuleChange } from '../../kernel/blocking-rules.ts';
import { APPROVAL_ALLOWED_TYPE } from '../../model/gates/ready-type.ts';
import { freezesAt } from '../../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../../model/policy/policy.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { BlockingRule } from '../../model/revision/revision-state.ts';
import type { RevisionEvaluation } from '../../store/evaluate-revision.ts';
import { unmetRules } from '../../store/unmet-rules.ts';

/** Rules that a message names. */
const MAX_NAMED_RULES = 10;
/** Milliseconds after which what is in flight is counted again for the condition: no event of the revision reports that. */
const COUNT_AGAIN_MS = 60_000;

export interface ApprovalCondition {
  readonly condition: Condition;
  /** When it may change by itself, milliseconds since the epoch. */
  readonly until?: number;
}

/** True if the revision shows the condition: it is proposed, and there are rules for its approval, or a plan may hold it. */
export function hasApprovalCondition(
  { lifecycle }: PackageRevision,
  { approvalRules, forbidSelfApproval, freezes }: EffectivePolicy,
  now: number,
  mayBeHeld: boolean,
): boolean {
  if (lifecycle !== 'Proposed') return false;
  return mayBeHeld || approvalRules.length > 0 || forbidSelfApproval || freezesAt(freezes, now).length > 0;
}

/**
 * The condition `sluice.dev/ApprovalAllowed`: which rules keep a proposed revision from being published, since when, until when, and who can
 * resolve it. `siblings` are the revisions of its package, `hold` is that of a plan. Undefined without rules.
 */
export function approvalCondition(
  evaluation: Pick<RevisionEvaluation, 'revision' | 'record' | 'content' | 'policy' | 'at'>,
  siblings: readonly PackageRevision[],
  hold?: BlockingRule,
): ApprovalCondition | undefined {
  const { revision, policy, at } = evaluation;
  const now = Date.parse(at);
  if (!hasApprovalCondition(revision, policy, now, hold !== undefined)) return undefined;
  const { blocking, all } = unmetRules(evaluation, siblings, at, hold);
  const counted = policy.approvalRules.some(({ maxInFlight }) => maxInFlight !== undefined);
  const next = Math.min(
    nextRuleChange(policy, blocking, now) ?? Number.POSITIVE_INFINITY,
    counted ? now + COUNT_AGAIN_MS : Number.POSITIVE_INFINITY,
  );
  const until = Number.isFinite(next) ? { until: next } : {};
  const type = APPROVAL_ALLOWED_TYPE;
  const [first] = all;
  if (first === undefined)
    return {
      condition: { type, status: 'True', reason: 'NoRuleBlocks', message: 'no rule blocks an approval' },
      ...until,
    };
  const more = all.length - MAX_NAMED_RULES;
  const texts = [
    ...all.slice(0, MAX_NAMED_RULES).map((rule) => refuseBlocked(rule).message),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
  return { condition: { type, status: 'False', reason: first.rule, message: texts.join('; ') }, ...until };
}
