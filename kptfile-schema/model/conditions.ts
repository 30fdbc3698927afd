import type { Condition, ConditionStatus, Kptfile, KptfileCondition } from './kptfile-schema.ts';

/**
 * The effective condition of each type, in the order of the file. Entries without a type are left out.
 * Several entries of one type that agree count once (the first); if they disagree the condition is False with
 * reason DuplicateConditions. A status that is not True, False or Unknown counts as Unknown with reason
 * InvalidStatus.
 */
export function conditionsOf(kptfile: Kptfile): Map<string, Condition> {
  const result = new Map<string, Condition>();
  for (const written of kptfile.status?.conditions ?? []) {
    const condition = effective(written);
    if (condition === undefined) continue;
    const earlier = result.get(condition.type);
    if (earlier === undefined) result.set(condition.type, condition);
    else if (earlier.status !== condition.status) result.set(condition.type, disagreeing(condition.type));
  }
  return result;
}

/** The condition types that the Kptfile's readiness gates name: each once, in the order of the file. */
export function gatesOf(kptfile: Kptfile): string[] {
  const types = new Set<string>();
  for (const { conditionType } of kptfile.info?.readinessGates ?? []) {
    if (conditionType !== undefined && conditionType !== '') types.add(conditionType);
  }
  return [...types];
}

/** True for the three values that a condition's status may have. */
export function isConditionStatus(text: string | undefined): text is ConditionStatus {
  return text === 'True' || text === 'False' || text === 'Unknown';
}

function effective(written: KptfileCondition): Condition | undefined {
  const { type, status, reason, message } = written;
  if (type === undefined || type === '') return undefined;
  if (!isConditionStatus(status)) {
    const found = status === undefined || status === '' ? 'no status' : `status ${JSON.stringify(status)}`;
    return {
      type,
      status: 'Unknown',
      reason: 'InvalidStatus',
      message: `The Kptfile has ${found} for this condition; it must be "True", "False" or "Unknown".`,
    };
  }
  return { type, status, ...(reason === undefined ? {} : { reason }), ...(message === undefined ? {} : { message }) };
}

function disagreeing(type: string): Condition {
  return {
    type,
    status: 'False',
    reason: 'DuplicateConditions',
    message: 'The Kptfile has several conditions of this type that disagree. Set it again to keep one.',
  };
}
