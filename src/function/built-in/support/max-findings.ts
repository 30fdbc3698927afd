import type { FunctionResult } from '../../model/function-result.ts';

/** Results of one validator. */
export const MAX_FINDINGS = 1000;

/** Truncates results; the last one then reports the truncation. */
export function truncateFindings(results: FunctionResult[]): void {
  if (results.length <= MAX_FINDINGS) return;
  results.length = MAX_FINDINGS;
  results.push({ message: 'further results are omitted: correct these first', severity: 'error' });
}
