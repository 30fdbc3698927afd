import { deepEqual } from '../model/deep-equal.ts';
import { fieldOf, isObject } from '../yaml/yaml-render.ts';

/** One step of turning a list into another; `from` and `to` are indexes into the old and the new list. */
export type ListChange =
  | { readonly kind: 'keep' | 'modify'; readonly from: number; readonly to: number }
  | { readonly kind: 'remove'; readonly from: number }
  | { readonly kind: 'insert'; readonly to: number };

/**
 * The steps that turn one list into another, in order. Any answer is right; this one is short where a list changes
 * as single edits change it: some items removed, some inserted, some modified in place. Linear.
 */
export function listChanges(before: readonly unknown[], after: readonly unknown[]): ListChange[] {
  const changes: ListChange[] = [];
  let tail = 0;
  while (tail < Math.min(before.length, after.length) && deepEqual(before.at(-1 - tail), after.at(-1 - tail))) tail++;
  let from = 0;
  let to = 0;
  while (from < before.length || to < after.length) {
    const left = before.length - from - tail;
    const right = after.length - to - tail;
    if (left === 0 && right === 0) {
      tail--;
      changes.push({ kind: 'keep', from: from++, to: to++ });
      continue;
    }
    if (left > 0 && right > 0 && deepEqual(before[from], after[to])) {
      changes.push({ kind: 'keep', from: from++, to: to++ });
    } else if (left > 0 && right > 0 && (left === right || sameSubject(before[from], after[to]))) {
      changes.push({ kind: 'modify', from: from++, to: to++ });
    } else if (left > right) {
      changes.push({ kind: 'remove', from: from++ });
    } else {
      changes.push({ kind: 'insert', to: to++ });
    }
  }
  return changes;
}

/** Conditions of one type and gates of one type are the same thing, changed. */
function sameSubject(before: unknown, after: unknown): boolean {
  if (!isObject(before) || !isObject(after)) return false;
  for (const key of ['type', 'conditionType']) {
    const subject = fieldOf(before, key);
    if (subject !== undefined && subject === fieldOf(after, key)) return true;
  }
  return false;
}
