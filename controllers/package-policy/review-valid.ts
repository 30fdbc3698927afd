import type { NewCondition } from '../../src/resource/object/condition.ts';

/** Type of the condition of a policy with spec.review. */
export const REVIEW_VALID = 'ReviewValid';

/** Sentences that a message has. */
const MAX_NAMED = 10;

/** Whether the objects alone show that spec.review cannot work, before there is a proposal. `problems`: a sentence each. */
export function reviewCondition(problems: readonly string[]): NewCondition {
  const type = REVIEW_VALID;
  if (problems.length === 0) return { type, status: 'True', reason: 'Valid', message: '' };
  return { type, status: 'False', reason: 'Invalid', message: problems.slice(0, MAX_NAMED).join('; ') };
}

/** While it is not known, as what it takes cannot be read. */
export function unreadReview(message: string): NewCondition {
  return { type: REVIEW_VALID, status: 'Unknown', reason: 'NotRead', message };
}
