import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import { timestamp } from '../../../src/foundation/time/clock.ts';
import { areEnough } from '../../../src/package/kernel/approvals.ts';
import { nextRuleChange } from '../../../src/package/kernel/blocking-rules.ts';
import { proposalOf } from '../../../src/package/kernel/revision-state.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import { recordWithReviews } from '../../../src/package/plan/merged-facts.ts';
import { decisionOf } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import { type ApprovalHolds, recordedApprovals, unmetRules } from '../../../src/package/store/unmet-rules.ts';
import { keyOf } from '../../../src/resource/object/object.ts';
import { verdictsOf } from '../reviews/apply-reviews.ts';
import { approvalsAtMerge, reviewsAsCandidates } from '../reviews/approvals-at-merge.ts';
import type { ApproverContext } from '../reviews/approver-at.ts';
import { type MappedRights, noApproverRules } from '../reviews/mapped-rights.ts';
import type { ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import { type MissingUntilMerge, missingUntilMerge, NOTHING_MISSING } from './missing-until-merge.ts';

/** The shortest and longest wait for a rule, in milliseconds. */
const MIN_WAIT_MS = 1000;
const MAX_WAIT_MS = 3_600_000;

interface UnmetPublication {
  /** The rules for which the check waits. */
  readonly rules: readonly BlockingRule[];
  /** When rules may begin or end to block by themselves, milliseconds since the epoch; undefined if never. */
  readonly changesAt: number | undefined;
}

/**
 * The rules that keep a proposal from being published now, as the condition `sluice.dev/ApprovalAllowed` has them, without missing approvals: reviewers
 * give these while the check is green. A plan holds it until it is decided: the host is to merge what was approved in its wave, or ahead of it.
 */
export async function unmetPublication(
  evaluation: RevisionEvaluation,
  siblings: readonly PackageRevision[],
  { now, holds }: { readonly now: number; readonly holds: ApprovalHolds | undefined },
): Promise<UnmetPublication> {
  const { revision, policy } = evaluation;
  const isDecided = decisionOf(evaluation, revision.namespace) !== undefined;
  const hold = !isDecided && holds?.mayHold(revision) === true ? await holds.holdOf(revision) : undefined;
  const { blocking } = unmetRules(evaluation, siblings, timestamp(now), hold);
  const rules = hold === undefined ? blocking : [...blocking, hold];
  return { rules: rules.map(lasting), changesAt: nextRuleChange(policy, blocking, now) };
}

/** Why no approval would publish a proposal at a time, milliseconds since the epoch, in words that stay; undefined if one would. */
export function closedBy(
  evaluation: RevisionEvaluation,
  siblings: readonly PackageRevision[],
  now: number,
): string | undefined {
  const { blocking } = unmetRules(evaluation, siblings, timestamp(now));
  return blocking.length === 0 ? undefined : blocking.map((rule) => lasting(rule).message).join('; ');
}

/**
 * A rule in words that stay as long as it blocks. What is in flight changes with each delivery, and a whole fleet can wait for that: each time the
 * pull requests of all would be written again.
 */
export function lasting({ since, ...rule }: BlockingRule): BlockingRule {
  if (rule.rule !== 'InFlight') return since === undefined ? rule : { ...rule, since };
  const message = `policy ${rule.policy} permits no more packages in flight, that is published and not yet delivered and healthy; "sluice why" lists them`;
  return { ...rule, message, resolvedBy: 'the targets that deliver them' };
}

/** The rule that none of the users whom the policy maps may approve a proposal; none for one that is decided, which the host merges for another user. */
export function noApprover(
  { evaluation, review }: Pick<ReviewedProposal, 'evaluation' | 'review'>,
  rights: MappedRights,
): readonly BlockingRule[] {
  const { namespace } = evaluation.revision;
  return decisionOf(evaluation, namespace) === undefined ? noApproverRules(review, rights, namespace) : [];
}

/**
 * The approvals of a proposal that its merge lacks; see `missingUntilMerge`. `rights` are those of the users whom the policy maps. `read` returns
 * the reviews, and is called only if the recorded approvals are not enough.
 */
export async function missingForMerge(
  context: ApproverContext & Parameters<typeof verdictsOf>[0] & Parameters<typeof missingUntilMerge>[0],
  proposal: Pick<ReviewedProposal, 'evaluation' | 'object' | 'review'>,
  {
    unsureMerger,
    rights,
    pull,
    read,
  }: {
    readonly unsureMerger: string | undefined;
    readonly rights: MappedRights;
    /** Undefined before there is one, which has no reviews. */
    readonly pull: ReviewedProposal['pull'] | undefined;
    read(): Promise<ReviewedProposal['reviews']>;
  },
): Promise<MissingUntilMerge> {
  const { evaluation, object, review } = proposal;
  const { content, policy, record, revision } = evaluation;
  const isDecided = decisionOf(evaluation, revision.namespace) !== undefined;
  const without = noApprover(proposal, rights);
  if (without.length > 0) return { rules: without, progress: undefined };
  if ((unsureMerger === undefined || isDecided) && areEnough(recordedApprovals(evaluation), policy))
    return NOTHING_MISSING;
  const candidates =
    pull === undefined ? [] : reviewsAsCandidates(await verdictsOf(context, { ...proposal, pull }, await read()));
  const { approvals } = await approvalsAtMerge(context, review, candidates, keyOf(object));
  const { namespace } = revision;
  return missingUntilMerge(context, review, {
    ...{ approvals, revision: keyOf(object), unsureMerger: isDecided ? undefined : unsureMerger },
    rules: { forbidSelfApproval: policy.forbidSelfApproval, since: proposalOf(record)?.at },
    statusWith: (given) =>
      recordedApprovals({ ...evaluation, record: recordWithReviews(record, given, { content, policy, namespace }) }),
  });
}

/** Reconciles again when a rule may begin or end to block by itself, which no event of the host reports. */
export function whenRulesChange(
  { changesAt }: Pick<UnmetPublication, 'changesAt'>,
  now: number,
  result: ReconcileResult | undefined,
): ReconcileResult | undefined {
  if (changesAt === undefined) return result;
  const after = Math.min(Math.max(MIN_WAIT_MS, changesAt - now), MAX_WAIT_MS);
  if ((result?.requeueAfter ?? Number.POSITIVE_INFINITY) <= after) return result;
  return { requeueAfter: after, reason: 'a rule of a policy begins or ends' };
}
