import { type Source, watchKind } from '../../../src/controller/source.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { ofSamePackage } from './supersede.ts';

/** Wakes for the other proposals of a package when one of its revisions is published. */
export function supersededProposals(store: Pick<RevisionStore, 'find' | 'list'>): Source<ObjectKey> {
  return watchKind(packageRevisionKind, {
    predicate: (event) => {
      if (event.type !== 'update') return false;
      return event.object.spec.lifecycle === 'Published' && event.old.spec.lifecycle !== 'Published';
    },
    map: ({ object }) => {
      const revision = store.find(keyText(keyOf(object)));
      return revision === undefined ? [] : otherProposals(store, revision);
    },
  });
}

/** The other proposals of the package of a revision. */
export function otherProposals(store: Pick<RevisionStore, 'list'>, revision: Revision): readonly ObjectKey[] {
  return ofSamePackage(store, revision)
    .filter(({ lifecycle, name }) => lifecycle === 'Proposed' && name !== revision.name)
    .map(({ namespace, name }) => ({ namespace, name }));
}
