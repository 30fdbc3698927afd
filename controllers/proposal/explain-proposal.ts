import {
  type ExplainedRevision,
  type Explainer,
  repairSteps,
  type Surroundings,
  sluiceCommand,
} from '../../src/package/api/explain/explainer.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { APPROVAL_ACTOR } from '../approval/approval-controller.ts';
import { approvalOutlook, ownAnnotation } from '../approval/approval-outlook.ts';
import { obstacleTo } from './readiness.ts';

/** Reports who will propose a draft, and when. */
export const proposalExplainer: Explainer = {
  explain(explained, surroundings) {
    const { evaluation, refusals } = explained;
    const { revision, gates, policy } = evaluation;
    if (revision.lifecycle !== 'Draft') return {};
    const { name } = revision;
    const repair = repairSteps(revision);
    if (revision.problem !== undefined) return { next: repair };
    const reasons: Reason[] = [];
    const next: string[] = [];
    const isClosed = gates.some((gate) => gate.state !== 'Open' && !gate.approveOnly);
    // Of gates that are enforced the gate explainer reports which are closed, and the next steps.
    if (isClosed && policy.enforcement !== 'enforce') {
      const message = `a gate is closed; no controller proposes it, but the repository permits users to do so (sluice.dev/gates: ${policy.enforcement})`;
      reasons.push({ reason: 'GatesClosed', message });
    }
    const { isReady, ...step } = nextStep(explained, surroundings);
    reasons.push(...step.reasons);
    if (isReady && !surroundings.running) next.push(sluiceCommand('up'));
    // A proposal would be refused for the current content.
    if (refusals.length > 0) next.push(...repair);
    else if (!isClosed || policy.enforcement !== 'enforce') next.push(sluiceCommand('rpkg', 'propose', name));
    return { reasons, next };
  },
};

/** Returns the next action of a controller on a draft; `isReady` if it acts as soon as it runs. */
function nextStep(
  { evaluation, siblings, refusals }: ExplainedRevision,
  surroundings: Surroundings,
): { readonly reasons: Reason[]; readonly isReady: boolean } {
  const { disabled, running } = surroundings;
  const isMarked = evaluation.policy.autoPropose || ownAnnotation(evaluation, AUTO_LIFECYCLE_ANNOTATION) === 'true';
  const outlook = approvalOutlook(evaluation, siblings, surroundings);
  const reasons: Reason[] = outlook?.acts === false ? [outlook.why] : [];
  const ready = (message: string) => ({ reasons: [...reasons, { reason: 'Ready', message }], isReady: true });
  const waiting = (...more: Reason[]) => ({ reasons: [...reasons, ...more], isReady: false });
  if (isMarked && disabled.includes('proposal'))
    return waiting({ reason: 'Disabled', message: 'the proposal controller is disabled' });
  if (isMarked) {
    if (refusals.length > 0 || obstacleTo(evaluation, (gate) => !gate.approveOnly) !== undefined) return waiting();
    return ready(running ? 'it is about to be proposed' : 'it is proposed as soon as "sluice up" runs');
  }
  if (outlook?.acts === true && refusals.length === 0)
    return ready(`${APPROVAL_ACTOR} proposes and approves it (${outlook.named}) ${outlook.when}`);
  if (outlook !== undefined) return waiting();
  return waiting({
    reason: 'NotMarked',
    message: `it is not marked for automatic proposal (annotation ${AUTO_LIFECYCLE_ANNOTATION}: "true", or a policy with autoPropose), so a user has to propose it`,
  });
}
