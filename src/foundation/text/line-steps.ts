import { createPacer } from '../concurrency/in-slices.ts';

/** Above this many differing lines the middle counts as replaced whole: the exact search is quadratic in them. */
const MAX_EDITS = 5_000;

/** A line that both texts have, that only the first has, or only the second. */
export interface LineStep {
  readonly kind: ' ' | '-' | '+';
  readonly line: string;
}

/** The steps from one list of lines to the other, by Myers' O(ND) greedy search between the common ends. */
export function lineSteps(left: readonly string[], right: readonly string[]): LineStep[] {
  const search = searchSteps(left, right);
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
  }
}

/** The same for a server: other requests get their turn during a long search, which takes up to about a tenth of a second. */
export async function lineStepsInSlices(left: readonly string[], right: readonly string[]): Promise<LineStep[]> {
  const search = searchSteps(left, right);
  const pause = createPacer();
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
    await pause();
  }
}

/** Yields after each round of the search. */
function* searchSteps(left: readonly string[], right: readonly string[]): Generator<undefined, LineStep[]> {
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
  const keep = (line: string): LineStep => ({ kind: ' ', line });
  return [
    ...left.slice(0, start).map(keep),
    ...(yield* shortestEdit(left.slice(start, left.length - end), right.slice(start, right.length - end))),
    ...left.slice(left.length - end).map(keep),
  ];
}

function* shortestEdit(left: readonly string[], right: readonly string[]): Generator<undefined, LineStep[]> {
  const whole = (): LineStep[] => [
    ...left.map((line): LineStep => ({ kind: '-', line })),
    ...right.map((line): LineStep => ({ kind: '+', line })),
  ];
  if (left.length === 0 || right.length === 0) return whole();
  const limit = Math.min(left.length + right.length, MAX_EDITS);
  // The furthest position in `left` on each diagonal; diagonal 0 is at index `limit + 1`.
  const furthest = new Int32Array(2 * limit + 3).fill(-1);
  const middle = limit + 1;
  furthest[middle + 1] = 0;
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= limit; edits++) {
    // Only the diagonals of this round and one beyond are needed to walk back.
    trace.push(furthest.slice(middle - edits - 1, middle + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = furthest[middle + diagonal + 1] ?? -1;
      const across = furthest[middle + diagonal - 1] ?? -1;
      let x = diagonal === -edits || (diagonal !== edits && across < down) ? down : across + 1;
      let y = x - diagonal;
      while (x < left.length && y < right.length && left[x] === right[y]) {
        x++;
        y++;
      }
      furthest[middle + diagonal] = x;
      if (x >= left.length && y >= right.length) return walkBack(left, right, trace);
    }
    if (trace.length * trace.length > 4_000_000) return whole();
    yield;
  }
  return whole();
}

function walkBack(left: readonly string[], right: readonly string[], trace: readonly Int32Array[]): LineStep[] {
  const steps: LineStep[] = [];
  let x = left.length;
  let y = right.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits];
    // The diagonals of a round begin with -edits - 1.
    const at = (diagonal: number) => furthest?.[diagonal + edits + 1] ?? -1;
    const diagonal = x - y;
    const down = at(diagonal + 1);
    const across = at(diagonal - 1);
    const before = diagonal === -edits || (diagonal !== edits && across < down) ? diagonal + 1 : diagonal - 1;
    const fromX = Math.max(0, at(before));
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
