import { timestamp } from '../../src/foundation/time/clock.ts';
import { type Explainer, type Surroundings, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import type { ApprovalStatus } from '../../src/package/kernel/approvals.ts';
import { PUSH_ACTOR } from '../../src/package/model/gates/verdict.ts';
import type { EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import { REVIEW_ACTOR } from '../../src/package/model/policy/review-policy.ts';
import { claimed } from '../../src/package/model/revision/attribution.ts';
import type { ApprovalExplanation, Reason } from '../../src/package/model/revision/explanation.ts';
import { decisionOf } from '../../src/package/store/approve-by-merge.ts';
import type { RevisionEvaluation } from '../../src/package/store/revision-store.ts';
import { APPROVAL_ACTOR } from './approval-controller.ts';
import { approvalOutlook } from './approval-outlook.ts';
import { type ApprovalState, approvalState } from './automatic-approval.ts';
import { reasonOf } from './explain-freeze.ts';
import { recordedApprovals } from './recorded-approvals.ts';

/** Reports whose approval a proposed revision waits for. */
export const approvalExplainer: Explainer = {
  explain({ evaluation, siblings }, surroundings) {
    const { revision, record, policy, gates } = evaluation;
    if (revision.lifecycle !== 'Proposed') return {};
    const reasons = pushReasons(evaluation);
    const next: string[] = [];
    const proposed = record.steps.findLast((step) => step.action === 'propose');
    const by = proposed === undefined ? '' : ` since ${proposed.at}, proposed by ${proposed.by}`;
    const status = recordedApprovals(evaluation);
    const approvals = explainApprovals(status, policy.forbidSelfApproval);
    const { barred, given, needed } = approvals;
    const state = approvalState(evaluation, siblings, timestamp(surroundings.now));
    const approved = needed > given.length ? given.map(({ subject }) => subject) : [];
    const others = [...barred.map(({ name }) => name), ...approved];
    const not = others.length === 0 ? '' : ` other than ${others.join(', ')}`;
    const outlook = approvalOutlook(evaluation, siblings, surroundings);
    if (outlook?.acts === false) reasons.push(outlook.why);
    const automatic =
      outlook === undefined || outlook.acts === false
        ? undefined
        : `${APPROVAL_ACTOR} (${outlook.named}; ${outlook.acts === true ? outlook.when : `blocked: ${outlook.blockedBy}`})`;
    reasons.push(...countReasons(status), ...quorumReasons(status));
    for (const rule of state.blocking) if (rule.rule !== 'Freeze') reasons.push(reasonOf(rule, `Blocked${rule.rule}`));
    if (state.automatic.length > 0) reasons.push(automaticReason(state, surroundings));
    const reject = sluiceCommand('rpkg', 'reject', revision.name, '--reason', 'what is wrong');
    const merge = waitsForMerge(evaluation);
    if (merge !== undefined) {
      reasons.push(merge);
      return { approvals, reasons, next, alternatives: [reject] };
    }
    const isBlocked = state.blocking.length > 0;
    const isByController =
      state.automatic.length > 0 && state.isApproved && !surroundings.disabled.includes('approval');
    const controller = isByController ? `${APPROVAL_ACTOR} (policy ${state.automatic.join(', ')})` : undefined;
    const who = automatic ?? controller ?? `a user${not}`;
    reasons.push({ reason: 'WaitsForApproval', message: `it waits for the approval of ${who}${by}` });
    next.push(...packagesInFlight(state, policy).map((name) => sluiceCommand('why', name)));
    // Of closed gates the gate explainer names the next steps.
    if (gates.every((gate) => gate.state === 'Open') || policy.enforcement !== 'enforce') {
      // A caller who proposed or changed it, or has approved it, needs another user.
      const as = others.includes(surroundings.actor) ? ['--as', 'other-user'] : [];
      const commit = isPushedSince(evaluation) ? ['--commit', revision.commit] : [];
      const approve = sluiceCommand('rpkg', 'approve', revision.name, ...commit, ...as);
      // Of those whom quorums count, enough have approved.
      const isDone = isByController && status.quorums.length > 0;
      if (!isBlocked && isDone) next.push(...(surroundings.running ? [] : [sluiceCommand('up')]));
      else if (!isBlocked) next.push(approve);
      else if (isByController) next.push(`${untilText(state)}; ${APPROVAL_ACTOR} approves it then`);
      // Approvals of a quorum are recorded before, if a controller publishes afterwards.
      else if (state.automatic.length > 0) next.push(approve);
      else next.push(`${untilText(state)}, then: ${approve}`);
    }
    return { approvals, reasons, next, alternatives: [reject] };
  },
};

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

/** Returns the reason and the approvals so far if one approval is not enough. */
function countReasons({ needed, given, elsewhere, isUnknown }: ApprovalStatus): Reason[] {
  const there = elsewhere
    .filter((one) => one.given.length < needed)
    .map((one) => ({
      reason: 'ApprovalsNeeded',
      message: `${one.given.length} of ${needed} approvals recorded in the namespace ${one.namespace}, which has registered the same branch, and whose policies require them by users who may approve there`,
    }));
  if (needed < 2) return there;
  const why = isUnknown ? 'content or the proposal was pushed with git by an unknown user' : 'a policy requires it';
  const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
  const message = `${given.length} of ${needed} approvals recorded${by === '' ? '' : ` (${by})`}; ${needed} users must approve it, since ${why}`;
  return [{ reason: 'ApprovalsNeeded', message }, ...there];
}

/** What each policy requires of users, who they are, and who has approved. */
function quorumReasons({ quorums }: ApprovalStatus): Reason[] {
  return quorums
    .filter(({ given, needed }) => given.length < needed)
    .map(({ policy, quorum, needed, given }) => {
      const by = given.map(({ subject, at }) => `${subject} at ${at}`).join(', ');
      const from = quorum.from.length === 0 ? 'all users who may approve' : quorum.from.join(', ');
      const where = quorum.namespace === undefined ? '' : ` in the namespace ${quorum.namespace}`;
      const more =
        needed > quorum.required ? '; one more than the policy requires, since a push was made by an unknown user' : '';
      const excluded = [
        ...(quorum.excludeProposer ? ['the proposer'] : []),
        ...(quorum.excludeContributors ? ['contributors'] : []),
      ];
      const without = excluded.length === 0 ? '' : `, without ${excluded.join(' and ')}`;
      return {
        reason: 'QuorumNeeded',
        message: `policy ${policy} requires ${needed} approvals${where}, of which ${given.length} are recorded${by === '' ? '' : ` (${by})`}${more}`,
        resolvedBy: `${from}${without}`,
      };
    });
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

function pushReasons(evaluation: RevisionEvaluation): Reason[] {
  if (!isPushedSince(evaluation)) return [];
  const { tip, commit } = evaluation.revision;
  const proposed = evaluation.record.steps.findLast((step) => step.action === 'propose');
  const message = `a push brought commit ${commit.slice(0, 12)} at ${timestamp(tip.time)} (${claimed(tip.author)}); the proposed commit is ${proposed?.commit?.slice(0, 12) ?? 'another one'}, so review the difference before you approve it`;
  return [{ reason: 'PushedAfterProposal', message }];
}
