import type { Change } from '../../src/delivery/dora/change.ts';
import type { RevisionFacts } from '../../src/delivery/dora/record-facts.ts';
import { revertedIn } from '../../src/delivery/dora/revert-reason.ts';
import type { PackageName } from '../../src/delivery/status/target-deployment.ts';
import { createdAt } from '../../src/package/api/objects/revision-object.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import { isPublished } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';

/** What package repositories know of the revisions that a branch names. */
export interface KnownRevisions {
  /** What the record of a published revision states; undefined while the repository is not open, and for a revision that is gone. */
  factsOf(change: Pick<Change, 'repository' | 'package' | 'revision'>): RevisionFacts | undefined;
  /** False for a number above every published revision of the package: another writer of the branch made it up. */
  mayExist(name: PackageName, revision: number): boolean;
}

export function knownRevisions(store: Pick<RevisionStore, 'repositories'>, namespace: string): KnownRevisions {
  const repositories = new Map(
    store.repositories().flatMap((one) => (one.namespace === namespace ? [[one.repository, one]] : [])),
  );
  const rowsOf = ({ repository, package: path }: PackageName) =>
    (repositories.get(repository)?.index.ofPackage(path) ?? []).filter((row) => isPublished(row) && row.revision > 0);
  return {
    factsOf(change) {
      const row = rowsOf(change).find(({ revision }) => revision === change.revision);
      if (row === undefined) return undefined;
      const steps = row.record?.steps ?? publishedRecordOf(row.tip.facts)?.steps ?? [];
      const reason = steps.findLast(({ action }) => action === 'propose')?.reason;
      return { createdAt: createdAt(row), reverts: reason === undefined ? undefined : revertedIn(reason) };
    },
    mayExist(name, revision) {
      const rows = rowsOf(name);
      // Without rows the repository may not be open yet, or the package is deleted.
      return rows.length === 0 || revision <= Math.max(...rows.map((row) => row.revision));
    },
  };
}
