import type { Source } from '../../src/controller/source.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { selects } from '../../src/package/store/selected-packages.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { isActive } from '../../src/rollout/wave/plan-selection.ts';

/** Wakes for the Proposed revisions that a plan may have held, when it has ended or selects others. */
export function releasedRevisions(store: Pick<RevisionStore, 'find'>): Source<ObjectKey> {
  return {
    start({ informer, enqueue }) {
      const revisions = informer(packageRevisionKind);
      const repositories = informer(repositoryKind);
      const wake = ({ metadata, spec }: WavePlan) => {
        const { namespace = '' } = metadata;
        // What a set or a blueprint selects is not read again here: it may have changed since the plan held it.
        const { variantSet: _set, blueprint: _blueprint, ...packages } = spec.selector;
        for (const object of revisions.inNamespace(namespace)) {
          if (object.spec.lifecycle !== 'Proposed') continue;
          const revision = store.find(keyText(keyOf(object)));
          const repository = repositories.get({ namespace, name: object.spec.repository });
          if (revision === undefined || selects(packages, revision, repository)) enqueue(keyOf(object));
        }
      };
      return informer(wavePlanKind).addHandler((event) => {
        const before = event.type === 'update' ? event.old : event.object;
        const wasActive = event.type === 'update' ? isActive(event.old) : event.type === 'delete';
        const isOver = event.type === 'delete' || !isActive(event.object);
        const isOther = event.type === 'update' && event.old.metadata.generation !== event.object.metadata.generation;
        if (wasActive && (isOver || isOther)) wake(before);
      });
    },
  };
}
