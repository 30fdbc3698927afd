import type { FunctionResult } from '../../model/function-result.ts';

/** Of one validator; nobody reads more. */
export const MOST_FINDINGS = 1000;

/** Cuts findings that nobody reads, and says so. */
export function cutFindings(results: FunctionResult[]): void {
  if (results.length <= MOST_FINDINGS) return;
  results.length = MOST_FINDINGS;
  results.push({ message: 'there is more: correct these first', severity: 'error' });
}
