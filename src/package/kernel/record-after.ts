import { evaluateGates } from '../model/gates/gates.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import {
  type Approval,
  approvalsElsewhere,
  approvalsIn,
  isDecision,
  type LifecycleStep,
  type RevisionRecord,
  withStep,
} from '../model/record/record.ts';
import type { Allowed, RevisionState } from '../model/revision/revision-state.ts';

/** The inputs of a decision, and the content of an approval; undefined if the package cannot be read. */
export interface DecidedOn {
  readonly state: RevisionState;
  readonly record: RevisionRecord;
  readonly approval: Approval | undefined;
}

/**
 * The record after an allowed step: a proposal adds the gates and the policies that it requires, an approval adds itself, a rejection takes both back.
 * An approval that is not enough is no step yet.
 */
export function recordAfter(
  { approvals, next, bypassed }: Allowed,
  { state, record, approval }: DecidedOn,
  step: LifecycleStep & { readonly commit: string },
  policy: EffectivePolicy,
): RevisionRecord {
  if (approvals !== undefined) {
    const { gates = [], policies } = record.proposal ?? {};
    const proposal = { gates, ...(policies === undefined ? {} : { policies }), approvalsNeeded: approvals.needed };
    const isDecided = approvals.isDecided === true && approval !== undefined;
    const given = isDecided ? decidedFor(step.commit, approval, record) : approval;
    return { ...record, commit: step.commit, approvals: approvalsWith(record, given), proposal };
  }
  const { proposal: _proposal, approvals: _approvals, ...rest } = record;
  const gates = bypassed.flatMap((refusal) => refusal.gate?.type ?? []);
  const taken = gates.length === 0 ? step : { ...step, gates };
  if (next?.lifecycle === 'Proposed') {
    const required = evaluateGates(state.facts, policy, step.at).map(({ type }) => type);
    const policies = policy.approvedBy.length === 0 ? {} : { policies: [...policy.approvedBy] };
    return withStep({ ...rest, proposal: { gates: required, ...policies } }, taken);
  }
  if (next?.lifecycle !== 'Published' || state.lifecycle !== 'Proposed' || approval === undefined)
    return withStep(rest, taken);
  const elsewhere = approvalsElsewhere(record, approval.namespace).filter(({ namespace = '' }) =>
    countedElsewhere(policy).has(namespace),
  );
  const all = [...approvalsIn(record, approval.namespace), ...elsewhere];
  const counted = { ...record, approvals: all.filter(({ withdrawn }) => withdrawn === undefined) };
  return withStep({ ...rest, approvals: approvalsWith(counted, approval) }, taken);
}

/** The approval as the decision for a merge of this commit. One that is made again keeps the time at which the user approved. */
function decidedFor(commit: string, approval: Approval, { approvals = [] }: RevisionRecord): Approval {
  const { subject, content, namespace, evidence, at } = approval;
  const isSame = (one: Approval) =>
    one.subject === subject && one.content === content && one.namespace === namespace && one.evidence === evidence;
  const before = approvals.find((one) => isDecision(one) && isSame(one));
  return { ...approval, mergeOf: commit, ...(before === undefined ? {} : { at: before.at, decidedAt: at }) };
}

/** Other namespaces whose users have to approve as well. */
function countedElsewhere({ alsoApprovedIn, approvalRules }: EffectivePolicy): Set<string> {
  return new Set([...alsoApprovedIn, ...approvalRules.flatMap(({ quorum }) => quorum?.namespace ?? [])]);
}

/** Returns the valid approvals, without an earlier one of the same user in the same namespace, and the new one. */
function approvalsWith({ approvals = [] }: RevisionRecord, approval: Approval | undefined): Approval[] {
  if (approval === undefined) return [...approvals];
  const { subject, content, namespace } = approval;
  const isReplaced = (other: Approval) => other.subject === subject && other.namespace === namespace;
  return [...approvals.filter((other) => other.content === content && !isReplaced(other)), approval];
}
