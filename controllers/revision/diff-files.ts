import { lineSteps } from '../../src/foundation/text/line-steps.ts';
import type { RunState } from './run-state.ts';

/** Lines of the diff in a condition; more would not help its readers. */
const MAX_LINES = 12;
const MAX_LINE_CHARACTERS = 120;

/** The changes of a round in files, line by line as `path: -old +new`, truncated to what fits into a condition. */
export function diffFiles(before: RunState, after: RunState): string {
  const old = before.package.subject.files;
  const { files } = after.package.subject;
  const lines: string[] = [];
  for (const path of after.package.changedSince(old)) {
    for (const { kind, line } of lineSteps(linesOf(old.get(path)), linesOf(files.get(path)))) {
      if (kind === ' ') continue;
      if (lines.length === MAX_LINES) return [...lines, '…'].join('\n');
      lines.push(
        `${path}: ${kind}${line.length <= MAX_LINE_CHARACTERS ? line : `${line.slice(0, MAX_LINE_CHARACTERS)}…`}`,
      );
    }
  }
  return lines.join('\n');
}

function linesOf(data: Buffer | undefined): string[] {
  return data === undefined ? [] : data.toString('utf8').split('\n');
}
