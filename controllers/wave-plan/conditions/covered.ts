import { counted, listed } from '../../../src/foundation/text/counted.ts';
import type { NewCondition } from '../../../src/resource/object/condition.ts';

/** Condition of a plan, set while its waves do not contain all of its targets. */
export const COVERED_CONDITION = 'Covered';

const MAX_NAMED = 3;

/** Says which targets no wave contains; undefined if each is in one. `left` are their ids, `total` is the number of targets. */
export function coveredCondition(left: readonly string[], total: number): NewCondition | undefined {
  if (left.length === 0) return undefined;
  const message = `the waves of the plan contain ${total - left.length} of ${counted(total, 'target')}, without ${listed(left, MAX_NAMED)}: what is left is skipped at the end; end spec.waves with one of percent: 100, or with one that selects them`;
  return { type: COVERED_CONDITION, status: 'False', reason: 'TargetsNotCovered', message };
}
