import { MAX_REVISION } from '../model/identity/layout.ts';
import type { RevisionRefs } from '../model/revision/revision-state.ts';

/** The number of the next publication of a package. */
export interface NextRevision {
  readonly revision: number;
  /** A ref above the tags of the package, which keeps each of them from being created. */
  readonly above?: string;
}

/**
 * The first number after the highest of the published revisions whose tag can be created. Any user who may push can have written a tag of that name
 * that shows no revision, or one below it, as for a package that is not there yet: its number is skipped, since the publication would wait for its
 * removal for ever.
 */
export function nextRevision(
  highest: number,
  { tagFor, conflictWith }: Pick<RevisionRefs, 'tagFor' | 'conflictWith'>,
): NextRevision {
  for (let revision = highest + 1; ; revision += 1) {
    const tag = tagFor(revision);
    const other = revision > MAX_REVISION ? undefined : conflictWith(tag);
    if (other === undefined) return { revision };
    if (other !== tag && !other.startsWith(`${tag}/`)) return { revision, above: other };
  }
}
