import type { Change } from '../../src/delivery/dora/change.ts';
import type { RevisionFacts } from '../../src/delivery/dora/record-facts.ts';
import { revertedIn } from '../../src/delivery/dora/revert-reason.ts';
import { createdAt } from '../../src/package/api/objects/revision-object.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import { isPublished } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';

/** What the record of a published revision states; undefined while the repository is not open, and for a revision that is gone. */
export function revisionFacts(
  store: Pick<RevisionStore, 'repositories'>,
  namespace: string,
): (change: Change) => RevisionFacts | undefined {
  const repositories = new Map(
    store.repositories().flatMap((one) => (one.namespace === namespace ? [[one.repository, one]] : [])),
  );
  return ({ repository, package: path, revision }) => {
    const rows = repositories.get(repository)?.index.ofPackage(path) ?? [];
    const row = rows.find((one) => one.revision === revision && isPublished(one));
    if (row === undefined) return undefined;
    const steps = row.record?.steps ?? publishedRecordOf(row.tip.facts)?.steps ?? [];
    const reason = steps.findLast(({ action }) => action === 'propose')?.reason;
    return { createdAt: createdAt(row), reverts: reason === undefined ? undefined : revertedIn(reason) };
  };
}
