import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { type LineStep, lineStepsInSlices } from '../../../foundation/text/line-steps.ts';

/** Lines around a change. */
const CONTEXT = 3;
/** A text as lines; the last one indicates whether the final line break is missing. */
interface Lines {
  readonly lines: readonly string[];
  readonly unterminated: boolean;
}

export interface FileDiffOptions {
  /** Names in the header; undefined for a file that does not exist. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** The unified diff of two texts, as `diff -u` and `git apply` read it; empty if they are equal. */
export async function unifiedDiff(
  before: string,
  after: string,
  { before: from, after: to }: FileDiffOptions,
): Promise<string> {
  if (before === after && from !== undefined && to !== undefined) return '';
  const pause = createPacer();
  const [left, right] = [split(before), split(after)];
  await pause();
  const steps = await lineStepsInSlices(left.lines, right.lines);
  const out = [`--- ${from ?? '/dev/null'}`, `+++ ${to ?? '/dev/null'}`];
  await pause();
  // One by one: a call has at most about a hundred thousand arguments, and a hunk may have more lines.
  for (const hunk of hunks(steps, left, right)) {
    for (const line of hunk) out.push(line);
    await pause();
  }
  return `${out.join('\n')}\n`;
}

function split(text: string): Lines {
  if (text === '') return { lines: [], unterminated: false };
  const unterminated = !text.endsWith('\n');
  const lines = text.split('\n');
  if (!unterminated) lines.pop();
  // The last line without a break differs from the same line with one.
  else lines.push(`${lines.pop()}\0`);
  return { lines, unterminated };
}

function* hunks(steps: readonly LineStep[], left: Lines, right: Lines): Generator<string[]> {
  let [oldLine, newLine] = [1, 1];
  let position = 0;
  while (position < steps.length) {
    if (steps[position]?.kind === ' ') {
      position++;
      oldLine++;
      newLine++;
      continue;
    }
    const first = Math.max(0, position - CONTEXT);
    let last = position;
    for (let next = position; next < steps.length && next <= last + 2 * CONTEXT; next++) {
      if (steps[next]?.kind !== ' ') last = next;
    }
    const shown = steps.slice(first, Math.min(steps.length, last + CONTEXT + 1));
    const lead = position - first;
    const olds = shown.filter((step) => step.kind !== '+').length;
    const unchecked = shown.filter((step) => step.kind !== '-').length;
    const header = `@@ -${range(oldLine - lead, olds)} +${range(newLine - lead, unchecked)} @@`;
    yield [header, ...shown.flatMap((step) => render(step, left, right))];
    const rest = shown.slice(lead);
    oldLine += rest.filter((step) => step.kind !== '+').length;
    newLine += rest.filter((step) => step.kind !== '-').length;
    position = first + shown.length;
  }
}

function range(start: number, count: number): string {
  if (count === 0) return `${start - 1},0`;
  return count === 1 ? `${start}` : `${start},${count}`;
}

function render({ kind, line }: LineStep, left: Lines, right: Lines): string[] {
  const marked = (left.unterminated || right.unterminated) && line.endsWith('\0');
  return marked ? [`${kind}${line.slice(0, -1)}`, '\\ No newline at end of file'] : [`${kind}${line}`];
}
