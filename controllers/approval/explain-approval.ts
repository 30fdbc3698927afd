import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import { counted } from '../../src/foundation/text/counted.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import {
  type ExplainedRevision,
  type Explainer,
  type Findings,
  type Surroundings,
  sluiceCommand,
} from '../../src/package/api/explain/explainer.ts';
import type { ApprovalStatus } from '../../src/package/kernel/approvals.ts';
import { PUSH_ACTOR } from '../../src/package/model/gates/verdict.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import { REVIEW_ACTOR } from '../../src/package/model/policy/review-policy.ts';
import { claimed } from '../../src/package/model/revision/attribution.ts';
import type { ApprovalExplanation, Reason } from '../../src/package/model/revision/explanation.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import { decisionOf } from '../../src/package/store/approve-by-merge.ts';
import { type RevisionEvaluation, refusalOf } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { recordedApprovals } from '../../src/package/store/unmet-rules.ts';
import { batchBranchOf } from '../pull-request/batch/batch-branch.ts';
import { hostMergeRules } from '../pull-request/checks/host-merge-rules.ts';
import { namedOnHost } from '../pull-request/reviews/mapped-rights.ts';
import type { ShownProposals } from '../pull-request/shown-proposals.ts';
import { proposalId } from '../pull-request/text/section.ts';
import { APPROVAL_ACTOR } from './approval-controller.ts';
import { approvalOutlook } from './approval-outlook.ts';
import { type ApprovalState, approvalState } from './automatic-approval.ts';
import { reasonOf } from './explain-freeze.ts';

/** The reasons of rules that an approval meets. */
const REASONS: Partial<Record<BlockingRule['rule'], string>> = {
  SelfApproval: 'ApprovalsNeeded',
  Quorum: 'QuorumNeeded',
};

export interface ApprovalExplainerOptions {
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  /** What the controller of pull requests has found, in its process. */
  readonly shown?: Pick<ShownProposals, 'get'> | undefined;
  /** Whether a plan holds a revision. Default: none does. */
  readonly isHeld?: (revision: PackageRevision) => Promise<boolean>;
}

/** Reports whose approval a proposed revision waits for. */
export function approvalExplainer(options: ApprovalExplainerOptions): Explainer {
  return { explain: (explained, surroundings) => explainApproval(options, explained, surroundings) };
}

async function explainApproval(
  options: ApprovalExplainerOptions,
  { evaluation, siblings }: ExplainedRevision,
  surroundings: Surroundings,
): Promise<Findings> {
  const { revision, record, policy, gates } = evaluation;
  if (revision.lifecycle !== 'Proposed') return {};
  const reasons = await pushReasons(options.store, evaluation);
  const next: string[] = [];
  const proposed = record.steps.findLast((step) => step.action === 'propose');
  const by = proposed === undefined ? '' : ` since ${proposed.at}, proposed by ${proposed.by}`;
  const status = recordedApprovals(evaluation);
  const approvals = explainApprovals(status, policy.forbidSelfApproval);
  const { barred, given, needed } = approvals;
  const state = approvalState(evaluation, siblings, { at: timestamp(surroundings.now) });
  const approved = needed > given.length ? given.map(({ subject }) => subject) : [];
  const others = [...barred.map(({ name }) => name), ...approved];
  const not = others.length === 0 ? '' : ` other than ${others.join(', ')}`;
  const outlook = approvalOutlook(evaluation, siblings, surroundings);
  if (outlook?.acts === false) reasons.push(outlook.why);
  const automatic =
    outlook === undefined || outlook.acts === false
      ? undefined
      : `${APPROVAL_ACTOR} (${outlook.named}; ${outlook.acts === true ? outlook.when : `blocked: ${outlook.blockedBy}`})`;
  for (const rule of state.all) {
    const { rule: type } = rule;
    // Freezes come first, and which users a single approval waits for comes last.
    const isElsewhere = type === 'Freeze' || (type === 'SelfApproval' && needsOne(status));
    if (!isElsewhere) reasons.push(reasonOf(rule, REASONS[type] ?? `Blocked${type}`));
  }
  if (state.automatic.length > 0) reasons.push(automaticReason(state, surroundings));
  const reject = sluiceCommand('rpkg', 'reject', revision.name, '--reason', 'what is wrong');
  const alternatives = [reject];
  const merge = waitsForMerge(evaluation);
  if (merge !== undefined) {
    reasons.push(merge);
    return { approvals, reasons, next, alternatives };
  }
  const isBlocked = state.blocking.length > 0;
  if (state.blocking.some(({ rule }) => rule === 'RecordLost')) {
    next.push(reject, sluiceCommand('rpkg', 'propose', revision.name));
    return { approvals, reasons, next };
  }
  const isByController = state.automatic.length > 0 && state.isApproved && !surroundings.disabled.includes('approval');
  const controller = isByController ? `${APPROVAL_ACTOR} (policy ${state.automatic.join(', ')})` : undefined;
  const who = automatic ?? controller ?? `a user${not}`;
  // The note about its reviews says for what it waits.
  const notes = options.store.repositoryOf(revision).refusals.of(revision.name);
  const isByUser = automatic === undefined && controller === undefined;
  const isReviewed = isByUser && notes.some(({ reason }) => reason === 'ApprovedByReview');
  if (!isReviewed) reasons.push({ reason: 'WaitsForApproval', message: `it waits for the approval of ${who}${by}` });
  next.push(...packagesInFlight(state, policy).map((name) => sluiceCommand('why', name)));
  // Of closed gates the gate explainer names the next steps.
  if (gates.every((gate) => gate.state === 'Open') || policy.enforcement !== 'enforce') {
    // A caller who proposed or changed it, or has approved it, needs another user.
    const as = others.includes(surroundings.actor) ? ['--as', 'other-user'] : [];
    const commit = isPushedSince(evaluation) ? ['--commit', revision.commit] : [];
    const approve = sluiceCommand('rpkg', 'approve', revision.name, ...commit, ...as);
    const missing = { count: needed - given.length, others, approve };
    const onHost = await actOnHost(options, evaluation, missing, surroundings);
    // Of those whom quorums count, enough have approved.
    const isDone = isByController && status.quorums.length > 0;
    // The kernel explainer names the next steps, since no approval ends that.
    if (refusalOf(evaluation) !== undefined) return { approvals, reasons, next, alternatives };
    if (evaluation.overtaken !== undefined) alternatives.unshift(approve);
    else if (!isBlocked && isDone) next.push(...(surroundings.running ? [] : [sluiceCommand('up')]));
    else if (!isBlocked && onHost !== undefined) {
      next.push(...onHost);
      // It would publish it past the pull request that its policy has it reviewed in.
      alternatives.unshift(approve);
    } else if (!isBlocked) next.push(approve);
    else if (isByController) next.push(`${untilText(state)}; ${APPROVAL_ACTOR} approves it then`);
    // Approvals of a quorum are recorded before, if a controller publishes afterwards.
    else if (state.automatic.length > 0) next.push(approve);
    else next.push(`${untilText(state)}, then: ${approve}`);
  }
  return { approvals, reasons, next, alternatives };
}

/**
 * What users do in the pull request of a proposal to publish it, nothing while its check or its end is against that; its address is in the reason of the
 * pull request. Undefined where it is approved elsewhere. Of the `others` no further approval counts; `approve` is the command for one through Sluice.
 */
async function actOnHost(
  { store, isHeld, shown }: ApprovalExplainerOptions,
  evaluation: RevisionEvaluation,
  missing: { readonly count: number; readonly others: readonly string[]; readonly approve: string },
  { disabled }: Surroundings,
): Promise<readonly string[] | undefined> {
  const { revision } = evaluation;
  const { review, reviewProblem } = evaluation.policy;
  if (review === undefined || reviewProblem !== undefined || disabled.includes('pull-request')) return undefined;
  const isByMerge = review.publishOn === 'merge';
  if (!isByMerge && (review.publishOn !== 'review' || review.approvers.length === 0)) return undefined;
  const repository = store.repositoryOf(revision);
  if (repository.refusals.hasEnded(revision)) return [];
  // Of a shared one, Sluice takes the package alone to its branch.
  const proposal = proposalId(revision.uid, evaluation.record.steps);
  const isShared = (await batchBranchOf(repository, proposal)) !== undefined;
  const rules = isShared ? [] : await hostMergeRules(repository, evaluation, review);
  if (rules.some(({ rule }) => rule === 'ForeignFiles')) return [];
  const known = shown?.get(revision);
  const rights = known?.proposal === proposal ? known.rights : undefined;
  // The explainer of the pull request has the command that grants them the right.
  if (rights?.isNone === true) return [];
  const { approvers } = review;
  const without = new Set([...(rights?.without.map(({ name }) => name) ?? []), ...missing.others]);
  if (approvers.length > 0 && approvers.every(({ subject }) => without.has(subject))) return undefined;
  const mapped = [...without].filter((name) => approvers.some(({ subject }) => subject === name));
  const not = mapped.length === 0 ? '' : `, not as ${mapped.map((name) => namedOnHost(name, approvers)).join(' or ')}`;
  if (!isByMerge) return [`approve it by a review of its pull request${not}`];
  // A merge would be out of band, or ahead of its wave.
  if (rules.length > 0 || (await isHeld?.(revision)) === true) return [];
  const left = [...new Set(approvers.flatMap(({ subject }) => (without.has(subject) ? [] : subject)))];
  if (approvers.length > 0 && left.length < missing.count) {
    const named = left.map((name) => namedOnHost(name, approvers)).join(' or ');
    return [
      `add an entry for another user to spec.review.approvers of the policy ${review.policy}, or as another user than ${named}: ${missing.approve}`,
    ];
  }
  // The merge is an approval too, of another user than those who reviewed.
  return missing.count < 2
    ? [`merge its pull request${not}`]
    : [
        `merge its pull request as a user whom the policy maps, after approving reviews there by ${counted(missing.count - 1, 'other mapped user')}${not}`,
      ];
}

/** That an approved proposal waits until the Git host has merged it; undefined for all others. */
export function waitsForMerge(
  evaluation: Pick<RevisionEvaluation, 'content' | 'record' | 'revision'>,
): Reason | undefined {
  const decision = decisionOf(evaluation, evaluation.revision.namespace);
  if (decision === undefined) return undefined;
  const message = `it is approved by ${decision.subject} since ${decision.at}, and waits until the Git host has merged its pull request, since the rules of the host reserve the main branch for merges`;
  return { reason: 'WaitsForMerge', message, resolvedBy: REVIEW_ACTOR };
}

/** The wait for the rules that block a revision; `until` is missing in those that do not end by themselves. */
function untilText({ blocking }: ApprovalState): string {
  const ends = blocking.flatMap(({ until }) => until ?? []).sort();
  return ends.length < blocking.length ? 'wait until no rule blocks it' : `wait until ${ends.at(-1)}`;
}

/** The first package in flight of each rule that permits no more. */
function packagesInFlight({ blocking }: ApprovalState, { approvalRules }: EffectivePolicy): string[] {
  const full = new Set(blocking.filter(({ rule }) => rule === 'InFlight').map(({ policy }) => policy));
  return approvalRules.filter(({ policy }) => full.has(policy)).flatMap(({ inFlight }) => inFlight[0]?.name ?? []);
}

function explainApprovals(status: ApprovalStatus, forbidSelfApproval: boolean): ApprovalExplanation {
  // Of several requirements, that with the most missing approvals.
  const own = [...status.quorums.filter(({ quorum }) => quorum.namespace === undefined)]
    .map(({ needed, given, barred }) => ({
      ...{ needed, given },
      barred: [...barred].map(([name, because]) => ({ name, because })),
    }))
    .sort((a, b) => b.needed - b.given.length - (a.needed - a.given.length))[0];
  const missingOf = (one: Pick<ApprovalStatus, 'needed' | 'given'>) => one.needed - one.given.length;
  // Without the rule the status counts no approvals, so that only quorums do.
  const isWorse = own !== undefined && (!forbidSelfApproval || missingOf(own) >= missingOf(status));
  const { needed, given, barred } = isWorse ? own : status;
  return {
    needed,
    given: given.map(({ subject, face, at }) => ({ subject, face, at })),
    barred: barred
      .filter(({ name }) => name !== PUSH_ACTOR)
      .map(({ name, because }) => ({ name, because: because === 'proposed' ? 'proposed it' : 'changed its content' })),
  };
}

/** True if one approval of one namespace is enough. */
function needsOne({ needed, elsewhere }: ApprovalStatus): boolean {
  return needed < 2 && elsewhere.every(({ given }) => given.length >= needed);
}

/** Whether and when a controller approves it. */
function automaticReason(
  { automatic, blocking, obstacle, isApproved }: ApprovalState,
  { disabled, running }: Surroundings,
): Reason {
  const by = `policy ${automatic.join(', ')} approves it automatically`;
  const waits = [
    ...(disabled.includes('approval') ? ['the approval controller is disabled'] : []),
    ...(obstacle === undefined ? [] : [obstacle.message]),
    ...(isApproved ? [] : ['approvals of users are missing']),
    ...(blocking.length === 0 ? [] : ['a rule blocks it']),
  ];
  const when = running ? 'now' : 'as soon as "sluice up" runs';
  return {
    reason: 'AutomaticApproval',
    message: waits.length === 0 ? `${by} ${when}` : `${by} later: ${waits.join('; ')}`,
  };
}

/** True if a push changed the proposed branch after the proposal. */
function isPushedSince({ record }: RevisionEvaluation): boolean {
  return record.steps.at(-1)?.action === 'push' && record.steps.some(({ action }) => action === 'propose');
}

async function pushReasons(
  store: Pick<RevisionStore, 'repositoryOf'>,
  evaluation: RevisionEvaluation,
): Promise<Reason[]> {
  if (!isPushedSince(evaluation)) return [];
  const { revision, record } = evaluation;
  const { commit, at, by } = await lastPush(store, evaluation);
  const proposed = record.steps.findLast((step) => step.action === 'propose' && step.commit !== undefined);
  const present =
    commit === revision.commit ? '' : `, on which there are later commits up to ${shortOf(revision.commit)}`;
  const message = `a push brought commit ${shortOf(commit)} at ${at} (${by})${present}; the proposed commit is ${shortOf(proposed?.commit)}, so review the difference before you approve it`;
  return [{ reason: 'PushedAfterProposal', message }];
}

/** The last push that is known: what Sluice has committed on top of one is none. */
async function lastPush(
  store: Pick<RevisionStore, 'repositoryOf'>,
  { revision, record }: RevisionEvaluation,
): Promise<{ readonly commit: string; readonly at: string; readonly by: string }> {
  const { tip, commit } = revision;
  const step = record.steps.at(-1);
  const byOf = (author: string | undefined) => {
    if (step !== undefined && step.by !== PUSH_ACTOR) return step.by;
    return author === undefined ? 'an unknown user' : claimed(author);
  };
  // Of later pushes on top of one, no step has the pusher.
  if (tip.facts.actor === undefined || step?.commit === undefined || step.commit === commit)
    return { commit, at: timestamp(tip.time), by: step?.commit === commit ? byOf(tip.author) : claimed(tip.author) };
  // After a push that rewrote the branch it may not be there any more.
  const pushed = await unlessMissing(store.repositoryOf(revision).git.readCommit(step.commit));
  return { commit: step.commit, at: step.at, by: byOf(pushed?.author.name) };
}

function shortOf(commit: string | undefined): string {
  return commit?.slice(0, 12) ?? 'another one';
}
