import type { Node } from 'yaml';
import { isSame, type SavedNode } from './saved-node.ts';

/** Above this the middle of a list counts as replaced: the search takes the product of both lengths. */
const MAX_CELLS = 40_000;

/** One item of a list: kept (`item` may differ from `saved`), removed (no `item`), or new (no `saved`). */
export interface ItemStep {
  readonly saved?: SavedNode;
  readonly item?: Node;
}

/** The changes between two lists, by their longest common subsequence. */
export function alignItems(saved: readonly SavedNode[], items: readonly Node[]): ItemStep[] {
  const isItem = (old: SavedNode, item: Node) => old.node === item || isSame(old, item);
  let start = 0;
  while (start < saved.length && start < items.length && isItem(saved[start] as SavedNode, items[start] as Node))
    start++;
  let end = 0;
  while (
    end < saved.length - start &&
    end < items.length - start &&
    isItem(saved[saved.length - 1 - end] as SavedNode, items[items.length - 1 - end] as Node)
  ) {
    end++;
  }
  const pairUp = (from: number, to: number, first: number, last: number): ItemStep[] => {
    const steps: ItemStep[] = [];
    // As many as before: most likely each is a changed one.
    if (to - from === last - first) {
      for (let at = 0; from + at < to; at++)
        steps.push({ saved: saved[from + at] as SavedNode, item: items[first + at] as Node });
      return steps;
    }
    for (let at = from; at < to; at++) steps.push({ saved: saved[at] as SavedNode });
    for (let at = first; at < last; at++) steps.push({ item: items[at] as Node });
    return steps;
  };
  const steps = pairUp(0, start, 0, start);
  let from = start;
  let first = start;
  const to = saved.length - end;
  const last = items.length - end;
  if ((to - from) * (last - first) <= MAX_CELLS) {
    for (const [old, item] of commonPart(saved.slice(from, to), items.slice(first, last), isItem)) {
      steps.push(
        ...pairUp(from, start + old, first, start + item),
        ...pairUp(start + old, start + old + 1, start + item, start + item + 1),
      );
      from = start + old + 1;
      first = start + item + 1;
    }
  }
  return [...steps, ...pairUp(from, to, first, last), ...pairUp(to, saved.length, last, items.length)];
}

/** Places of a longest common subsequence in both lists. */
function commonPart<Left, Right>(
  left: readonly Left[],
  right: readonly Right[],
  isEqual: (a: Left, b: Right) => boolean,
): [number, number][] {
  if (left.length === 0 || right.length === 0) return [];
  const width = right.length + 1;
  const lengths = new Uint32Array((left.length + 1) * width);
  const equal = left.map((a) => right.map((b) => isEqual(a, b)));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        equal[i]?.[j] === true
          ? (lengths[(i + 1) * width + j + 1] as number) + 1
          : Math.max(lengths[(i + 1) * width + j] as number, lengths[i * width + j + 1] as number);
    }
  }
  const found: [number, number][] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    if (equal[i]?.[j] === true) found.push([i++, j++]);
    else if ((lengths[(i + 1) * width + j] as number) >= (lengths[i * width + j + 1] as number)) i++;
    else j++;
  }
  return found;
}
