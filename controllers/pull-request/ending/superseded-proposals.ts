import { type Source, watchKind } from '../../../src/controller/source.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { ofSamePackage } from './supersede.ts';

/** The number of what stands for a package on the main branch. */
const ON_MAIN = -1;

/**
 * Wakes for the other proposals of a package when one of its revisions is published, and when the package on the main branch changes, which may
 * conflict with them.
 */
export function supersededProposals(store: Pick<RevisionStore, 'list'>): Source<ObjectKey> {
  return watchKind(packageRevisionKind, {
    predicate: (event) => {
      if (event.object.spec.revision === ON_MAIN) return true;
      if (event.type !== 'update') return false;
      return event.object.spec.lifecycle === 'Published' && event.old.spec.lifecycle !== 'Published';
    },
    map: ({ object: { metadata, spec } }) => {
      const repository = keyText({ namespace: metadata.namespace, name: spec.repository });
      return proposalsAmong(store.list({ repository, package: spec.packageName })).filter(
        ({ name }) => name !== metadata.name,
      );
    },
  });
}

/** The other proposals of the package of a revision. */
export function otherProposals(store: Pick<RevisionStore, 'list'>, revision: Revision): readonly ObjectKey[] {
  return proposalsAmong(ofSamePackage(store, revision)).filter(({ name }) => name !== revision.name);
}

function proposalsAmong(revisions: readonly Revision[]): readonly ObjectKey[] {
  return revisions
    .filter(({ lifecycle }) => lifecycle === 'Proposed')
    .map(({ namespace, name }) => ({ namespace, name }));
}
