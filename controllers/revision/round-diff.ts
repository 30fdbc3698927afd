import { lineSteps } from '../../src/foundation/line-steps.ts';
import type { RunState } from './run-state.ts';

/** Lines that a person reads in a condition; more say no more. */
const MOST_LINES = 12;
const LONGEST_LINE = 120;

/** What a round changed in files, line by line as `path: -old +new`, cut to what fits into a condition. */
export function roundDiff(before: RunState, after: RunState): string {
  const old = before.package.subject.files;
  const { files } = after.package.subject;
  const lines: string[] = [];
  for (const path of after.package.changedSince(old)) {
    for (const { kind, line } of lineSteps(linesOf(old.get(path)), linesOf(files.get(path)))) {
      if (kind === ' ') continue;
      if (lines.length === MOST_LINES) return [...lines, '…'].join('\n');
      lines.push(`${path}: ${kind}${line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)}…`}`);
    }
  }
  return lines.join('\n');
}

function linesOf(data: Buffer | undefined): string[] {
  return data === undefined ? [] : data.toString('utf8').split('\n');
}
