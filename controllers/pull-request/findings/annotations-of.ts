import type { Annotation } from '../../../src/forge/forge.ts';
import type { Finding } from '../../../src/function/lint/finding.ts';
import { plainLine } from '../text/quote.ts';

const MAX_MESSAGE_CHARACTERS = 500;
const LEVELS = { error: 'failure', warning: 'warning', notice: 'notice' } as const;
const ORDER: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, notice: 2 };

/** Compares findings for sorting: errors first. */
export function bySeverity(a: Finding, b: Finding): number {
  return ORDER[a.severity] - ORDER[b.severity];
}

/** Errors first, since hosts show or link only some of them. */
export function annotationsOf(findings: readonly Finding[]): Annotation[] {
  return findings.toSorted(bySeverity).map(({ file, line, severity, code, message }) => ({
    ...{ path: file, line, level: LEVELS[severity] },
    ...{ title: plainLine(code, 100), message: plainLine(message, MAX_MESSAGE_CHARACTERS) },
  }));
}
