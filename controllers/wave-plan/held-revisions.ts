import type { InformerEvent } from '../../src/controller/informer-store.ts';
import type { Source } from '../../src/controller/source.ts';
import { type Selecting, selectsByName } from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { isActive, nameSelectingOf } from '../../src/rollout/wave/plan-selection.ts';

/** Wakes for the Proposed revisions that a plan holds or may have held, when its hold begins or ends, or when it selects others. */
export function heldRevisions(store: Pick<RevisionStore, 'find'>): Source<ObjectKey> {
  return {
    start({ informer, enqueue }) {
      const revisions = informer(packageRevisionKind);
      const repositories = informer(repositoryKind);
      return informer(wavePlanKind).addHandler((event) => {
        const changed = changedHolds(event);
        if (changed.length === 0) return;
        const { namespace = '' } = event.object.metadata;
        for (const object of revisions.inNamespace(namespace)) {
          if (object.spec.lifecycle !== 'Proposed') continue;
          const revision = store.find(keyText(keyOf(object)));
          const repository = repositories.get({ namespace, name: object.spec.repository });
          if (revision === undefined || changed.some(({ spec }) => selectsByName(spec.selector, revision, repository)))
            enqueue(keyOf(object));
        }
      });
    },
  };
}

/**
 * What the plan of an event may hold or have held, in the form of policies, if that changes; approvals of its waves, and its status, change nothing. What
 * a set, a blueprint or labels select is not read: it may have changed since the plan held it.
 */
export function changedHolds(event: InformerEvent<WavePlan>): Selecting[] {
  const { type, object } = event;
  if (type === 'delete') return [nameSelectingOf(object)];
  const states = type === 'update' ? [event.old, object] : [object];
  const [was, is] = type === 'update' ? [isActive(event.old), isActive(object)] : [false, isActive(object)];
  if (!was && !is) return [];
  if (type === 'update' && was === is && sameValue(event.old.spec.selector, object.spec.selector)) return [];
  return states.map(nameSelectingOf);
}
