/**
 * The condition that Sluice computes of a revision with gates, for clients of Kubernetes: True while every gate is open for the current
 * content. It is shown on objects only. What clients write of it is ignored, and Git never has it.
 */
export const READY_TYPE = 'sluice.dev/Ready';

/**
 * The condition that Sluice computes of a proposed revision with rules for approvals: False while a rule keeps it from being published, such as a
 * freeze, a missing approval of a quorum or the hold of a WavePlan, with the rule as its reason. As the one above, it is shown on objects only.
 */
export const APPROVAL_ALLOWED_TYPE = 'sluice.dev/ApprovalAllowed';

/** True for the type of a condition that no client sets and Git never has. */
export function isComputedType(type: string): boolean {
  return type === READY_TYPE || type === APPROVAL_ALLOWED_TYPE;
}
