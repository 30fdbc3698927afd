import { setImmediate } from 'node:timers/promises';
import type { PackageRevision } from '../model/package-revision.ts';

/** Revisions that are announced at a time, before other work gets its turn: a few milliseconds of work for the listeners. */
const PART_SIZE = 64;
/** A package is announced as a whole unless that makes a part larger than this. */
const MAX_PART_SIZE = 8 * PART_SIZE;

/** Notifies all listeners. The first error of one is thrown after all were notified. */
export function notifyAll<Change>(listeners: Iterable<(change: Change) => void>, change: Change): void {
  const errors: unknown[] = [];
  for (const listener of listeners) {
    try {
      listener(change);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * Calls `announce` with one part of the revisions after the other, and lets other work have its turn in between. The first part is
 * announced before this returns. It ends early when `announce` returns false. What `announce` throws is thrown after the last part.
 */
export async function announceInParts(
  revisions: readonly PackageRevision[],
  announce: (part: readonly PackageRevision[]) => boolean,
): Promise<void> {
  const errors: unknown[] = [];
  for (let start = 0; start < revisions.length; ) {
    if (start > 0) await setImmediate();
    const end = endOfPart(revisions, start);
    try {
      if (!announce(revisions.slice(start, end))) break;
    } catch (error) {
      errors.push(error);
    }
    start = end;
  }
  if (errors.length > 0) throw errors[0];
}

/** The revisions of a package usually stand together. */
function endOfPart(revisions: readonly PackageRevision[], start: number): number {
  const most = Math.min(start + MAX_PART_SIZE, revisions.length);
  let end = Math.min(start + PART_SIZE, most);
  const name = revisions[end - 1]?.key.package;
  while (end < most && revisions[end]?.key.package === name) end += 1;
  return end;
}
