import type { PipelineStepResult } from '../../../kptfile-schema/index.ts';
import { describeFinding } from '../model/describe-finding.ts';

const LONGEST = 500;

/** Why a function failed, in one line. */
export function failureText({ errorResults = [], stderr, executionError, exitCode }: PipelineStepResult): string {
  const [first, ...others] = errorResults;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const why = first === undefined ? (executionError ?? stderr) : describeFinding(first) + more;
  // It goes to terminals, which obey control characters.
  const line = (why ?? '').replace(/[\s\p{Cc}]+/gu, ' ').trim() || `it ended with exit code ${exitCode}`;
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST - 1)}…`;
}
