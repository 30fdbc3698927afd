/** Lines around a change. */
const CONTEXT = 3;
/** Above this many differing lines the middle is shown as replaced whole: the exact search is quadratic in them. */
const MAX_EDITS = 5_000;

type Step = { readonly kind: ' ' | '-' | '+'; readonly line: string };

/** A text as lines; the last one says whether a final line break is missing. */
interface Lines {
  readonly lines: readonly string[];
  readonly unterminated: boolean;
}

export interface FileDiffOptions {
  /** Names in the header; undefined for a file that is not there. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** The unified diff of two texts, as `diff -u` and `git apply` read it; empty if they are equal. */
export function unifiedDiff(before: string, after: string, { before: from, after: to }: FileDiffOptions): string {
  if (before === after && from !== undefined && to !== undefined) return '';
  const [left, right] = [split(before), split(after)];
  const steps = compare(left.lines, right.lines);
  const out = [`--- ${from ?? '/dev/null'}`, `+++ ${to ?? '/dev/null'}`];
  for (const hunk of hunks(steps, left, right)) out.push(...hunk);
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

/** The steps from one list of lines to the other, by Myers' O(ND) greedy search between the common ends. */
function compare(left: readonly string[], right: readonly string[]): Step[] {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (
    end < left.length - start &&
    end < right.length - start &&
    left[left.length - 1 - end] === right[right.length - 1 - end]
  ) {
    end++;
  }
  const keep = (line: string): Step => ({ kind: ' ', line });
  return [
    ...left.slice(0, start).map(keep),
    ...shortestEdit(left.slice(start, left.length - end), right.slice(start, right.length - end)),
    ...left.slice(left.length - end).map(keep),
  ];
}

function shortestEdit(left: readonly string[], right: readonly string[]): Step[] {
  const whole = (): Step[] => [
    ...left.map((line): Step => ({ kind: '-', line })),
    ...right.map((line): Step => ({ kind: '+', line })),
  ];
  if (left.length === 0 || right.length === 0) return whole();
  const limit = Math.min(left.length + right.length, MAX_EDITS);
  const furthest = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= limit; edits++) {
    // Only the diagonals of one round are needed to walk back.
    trace.push(new Map(furthest));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = furthest.get(diagonal + 1) ?? -1;
      const across = furthest.get(diagonal - 1) ?? -1;
      let x = diagonal === -edits || (diagonal !== edits && across < down) ? down : across + 1;
      let y = x - diagonal;
      while (x < left.length && y < right.length && left[x] === right[y]) {
        x++;
        y++;
      }
      furthest.set(diagonal, x);
      if (x >= left.length && y >= right.length) return walkBack(left, right, trace);
    }
    if (trace.length * trace.length > 4_000_000) return whole();
  }
  return whole();
}

function walkBack(left: readonly string[], right: readonly string[], trace: readonly Map<number, number>[]): Step[] {
  const steps: Step[] = [];
  let x = left.length;
  let y = right.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits] ?? new Map<number, number>();
    const diagonal = x - y;
    const down = furthest.get(diagonal + 1) ?? -1;
    const across = furthest.get(diagonal - 1) ?? -1;
    const before = diagonal === -edits || (diagonal !== edits && across < down) ? diagonal + 1 : diagonal - 1;
    const fromX = furthest.get(before) ?? 0;
    const fromY = fromX - before;
    while (x > fromX && y > fromY) {
      steps.push({ kind: ' ', line: left[--x] ?? '' });
      y--;
    }
    if (edits === 0) break;
    if (x === fromX) steps.push({ kind: '+', line: right[--y] ?? '' });
    else steps.push({ kind: '-', line: left[--x] ?? '' });
  }
  return steps.reverse();
}

function* hunks(steps: readonly Step[], left: Lines, right: Lines): Generator<string[]> {
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
    const news = shown.filter((step) => step.kind !== '-').length;
    const header = `@@ -${range(oldLine - lead, olds)} +${range(newLine - lead, news)} @@`;
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

function render({ kind, line }: Step, left: Lines, right: Lines): string[] {
  const marked = (left.unterminated || right.unterminated) && line.endsWith('\0');
  return marked ? [`${kind}${line.slice(0, -1)}`, '\\ No newline at end of file'] : [`${kind}${line}`];
}
