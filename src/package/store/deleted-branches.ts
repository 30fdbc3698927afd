import type { IndexChange } from '../index/state/index-delta.ts';
import { draftRef, proposedRef, type RepositoryLayout } from '../model/identity/layout.ts';
import { isPlaceholder, isPublished } from '../model/revision/package-revision.ts';

/** Returns the branches of drafts and proposals that changes deleted. */
export function deletedBranches(changes: readonly IndexChange[], layout: RepositoryLayout): string[] {
  return changes.flatMap(({ before, after }) =>
    before === undefined || after !== undefined || isPublished(before) || isPlaceholder(before)
      ? []
      : [draftRef(layout, before.key), proposedRef(layout, before.key)],
  );
}
