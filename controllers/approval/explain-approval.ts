import { timestamp } from '../../src/foundation/time/clock.ts';
import { type Explainer, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import type { ApprovalStatus } from '../../src/package/kernel/approvals.ts';
import { PUSH_ACTOR } from '../../src/package/model/gates/verdict.ts';
import { claimed } from '../../src/package/model/revision/attribution.ts';
import type { ApprovalExplanation, Reason } from '../../src/package/model/revision/explanation.ts';
import type { RevisionEvaluation } from '../../src/package/store/revision-store.ts';
import { APPROVAL_ACTOR } from './approval-controller.ts';
import { approvalOutlook } from './approval-outlook.ts';
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
    const approvals = explainApprovals(status);
    const { barred, given, needed } = approvals;
    const approved = needed > given.length ? given.map(({ subject }) => subject) : [];
    const others = [...barred.map(({ name }) => name), ...approved];
    const not = others.length === 0 ? '' : ` other than ${others.join(', ')}`;
    const outlook = approvalOutlook(evaluation, siblings, surroundings);
    if (outlook?.acts === false) reasons.push(outlook.why);
    const automatic =
      outlook === undefined || outlook.acts === false
        ? undefined
        : `${APPROVAL_ACTOR} (${outlook.named}; ${outlook.acts === true ? outlook.when : `blocked: ${outlook.blockedBy}`})`;
    reasons.push(...countReasons(status));
    const who = automatic ?? `a user${not}`;
    reasons.push({ reason: 'WaitsForApproval', message: `it waits for the approval of ${who}${by}` });
    // Of closed gates the gate explainer names the next steps.
    if (gates.every((gate) => gate.state === 'Open') || policy.enforcement !== 'enforce') {
      // A caller who proposed or changed it, or has approved it, needs another user.
      const as = others.includes(surroundings.actor) ? ['--as', 'other-user'] : [];
      const commit = isPushedSince(evaluation) ? ['--commit', revision.commit] : [];
      next.push(sluiceCommand('rpkg', 'approve', revision.name, ...commit, ...as));
    }
    const reject = sluiceCommand('rpkg', 'reject', revision.name, '--reason', 'what is wrong');
    return { approvals, reasons, next, alternatives: [reject] };
  },
};

function explainApprovals({ needed, given, barred }: ApprovalStatus): ApprovalExplanation {
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
