import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Lifecycle } from '../model/revision/revision-state.ts';

export interface RevisionFilter {
  /** A name, in any namespace, or an id. */
  readonly repository?: string;
  readonly package?: string;
  readonly workspace?: string;
  readonly lifecycle?: Lifecycle;
}

/** True for a revision of a repository and package that the filter selects, if it selects the revision too. */
export function matches(revision: PackageRevision, filter: RevisionFilter): boolean {
  return (
    (filter.workspace === undefined || revision.key.workspace === filter.workspace) &&
    (filter.lifecycle === undefined || revision.lifecycle === filter.lifecycle)
  );
}
