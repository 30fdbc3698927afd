import { areEnough } from '../../src/package/kernel/approvals.ts';
import { freezesAt } from '../../src/package/model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { recordedApprovals, type UnmetRules, unmetRules } from '../../src/package/store/unmet-rules.ts';
import { type ApplicableResolvers, type Obstacle, obstacleTo } from '../proposal/readiness.ts';

/** What rules for approvals mean for a proposed revision now. */
export interface ApprovalState extends UnmetRules {
  /** Names of the policies by which a controller approves it; empty if users do. */
  readonly automatic: readonly string[];
  /** Whether the recorded approvals are enough without one more. */
  readonly isApproved: boolean;
  /** Why a controller must not act, besides these. */
  readonly obstacle: Obstacle | undefined;
}

/** True if rules for approvals, or freezes, may concern a revision at this time. */
export function hasApprovalRules(
  { approvalRules, automatic, forbidSelfApproval, freezes }: EffectivePolicy,
  now: number,
): boolean {
  const hasRules = approvalRules.length > 0 || automatic.length > 0 || forbidSelfApproval;
  return hasRules || freezesAt(freezes, now).length > 0;
}

interface ApprovalSurroundings {
  /** RFC 3339. */
  readonly at: string;
  /** The hold of a plan, if there is one. */
  readonly hold?: BlockingRule | undefined;
  readonly applicable?: ApplicableResolvers | undefined;
}

/** Evaluates the rules for a proposed revision, as the kernel will. `siblings` are the other revisions of the package. */
export function approvalState(
  evaluation: RevisionEvaluation,
  siblings: readonly PackageRevision[],
  { at, hold, applicable }: ApprovalSurroundings,
): ApprovalState {
  const { policy } = evaluation;
  return {
    ...unmetRules(evaluation, siblings, at, hold),
    automatic: policy.automatic,
    isApproved: areEnough(recordedApprovals(evaluation), policy),
    obstacle: obstacleTo(evaluation, () => true, applicable),
  };
}

/** The time at which the first of the rules may end, in milliseconds since the epoch; undefined if no rule ends by itself. */
export function firstEnd(blocking: readonly BlockingRule[]): number | undefined {
  const ends = blocking.flatMap(({ until }) => (until === undefined ? [] : Date.parse(until)));
  return ends.length === 0 ? undefined : Math.min(...ends);
}
