import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, toObject, watchKind } from '../../src/controller/source.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { keyOf, type ObjectKey } from '../../src/resource/object/object.ts';
import { isPending } from './readiness.ts';

/**
 * Wakes for a draft or proposed revision when it changes, and for all that a changed policy or repository may affect, or the promotion
 * of their repository. Status writes of either wake none.
 */
export function pendingRevisions(store: Pick<RevisionStore, 'onPromotion'>): Source<ObjectKey>[] {
  return [
    watchKind(packageRevisionKind, {
      predicate: (event) => isPending(event.object) || (event.type === 'update' && isPending(event.old)),
      map: toObject,
    }),
    {
      start({ informer, enqueue }) {
        const revisions = informer(packageRevisionKind);
        const wake = (repository?: string) => {
          for (const object of revisions.list()) {
            const isMeant = repository === undefined || object.spec.repository === repository;
            if (isMeant && isPending(object)) enqueue(keyOf(object));
          }
        };
        const ends = [
          informer(packagePolicyKind).addHandler((event) => {
            if (specOrMetadataChanged(event)) wake();
          }),
          informer(freezeKind).addHandler((event) => {
            // Which of them may be the namespace of the installation is not known here; freezes are rare.
            if (specOrMetadataChanged(event)) wake();
          }),
          informer(repositoryKind).addHandler((event) => {
            if (specOrMetadataChanged(event)) wake(event.object.metadata.name);
          }),
          store.onPromotion((id) => wake(id.slice(id.indexOf('/') + 1))),
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    },
  ];
}
