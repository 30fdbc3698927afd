import { yieldToEventLoop } from '../../foundation/in-slices.ts';
import type { PackageRevision } from '../model/package-revision.ts';

/** So many revisions are told at a time, before others get their turn: a few milliseconds of work for those who listen. */
const PART = 64;
/** A package is told as a whole unless that makes a part larger than this. */
const LARGEST_PART = 8 * PART;

/** Tells all listeners. What one of them cannot bear is its own fault: it is thrown when the others have heard. */
export function tellAll<News>(listeners: Iterable<(news: News) => void>, news: News): void {
  const errors: unknown[] = [];
  for (const listener of listeners) {
    try {
      listener(news);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * Calls `tell` with one part of the revisions after the other, and lets others have their turn in between. The first part is told
 * before this returns. It ends early when `tell` returns false. What `tell` throws is thrown after the last part.
 */
export async function inParts(
  revisions: readonly PackageRevision[],
  tell: (part: readonly PackageRevision[]) => boolean,
): Promise<void> {
  const errors: unknown[] = [];
  for (let start = 0; start < revisions.length; ) {
    if (start > 0) await yieldToEventLoop();
    const end = endOfPart(revisions, start);
    try {
      if (!tell(revisions.slice(start, end))) break;
    } catch (error) {
      errors.push(error);
    }
    start = end;
  }
  if (errors.length > 0) throw errors[0];
}

/** The revisions of a package usually stand together. */
function endOfPart(revisions: readonly PackageRevision[], start: number): number {
  const most = Math.min(start + LARGEST_PART, revisions.length);
  let end = Math.min(start + PART, most);
  const name = revisions[end - 1]?.key.package;
  while (end < most && revisions[end]?.key.package === name) end += 1;
  return end;
}
