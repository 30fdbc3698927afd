import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import type { OwnedRevisions } from './owned-revisions.ts';
import { ownersOf } from './plan-variant.ts';

/**
 * Deletes the drafts of a variant and proposes the deletion of what it published, or removes the variant from their owners. Revisions that
 * `isKept` stay as they are.
 */
export async function releaseRevisions(
  { store, owned }: { readonly store: Pick<RevisionStore, 'update'>; readonly owned: OwnedRevisions },
  { metadata: { namespace, uid }, spec }: Stored<PackageVariant>,
  context: RequestContext,
  isKept: (revision: PackageRevision) => boolean = () => false,
): Promise<void> {
  for (const revision of owned.of(uid)) {
    if (revision.namespace !== namespace || isKept(revision)) continue;
    const id = `${revision.namespace}/${revision.name}`;
    const ownerReferences = ownersOf(revision)
      .filter((owner) => owner.uid !== uid)
      .map((owner) => ({ ...owner }));
    const change = { metadata: { ownerReferences } };
    const { lifecycle } = revision;
    if (spec.deletionPolicy === 'orphan' || lifecycle === 'DeletionProposed')
      await store.update(id, { change }, context);
    else if (lifecycle === 'Published')
      // Without an owner: the garbage collection of a missing owner would complete the deletion, which a user has to approve.
      await store.update(id, { change, action: 'propose-deletion' }, context);
    else await store.update(id, { action: 'delete' }, context);
  }
}
