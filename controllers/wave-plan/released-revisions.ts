import type { Source } from '../../src/controller/source.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave-plan.ts';
import { keyOf, type ObjectKey } from '../../src/resource/object/object.ts';
import { isActive } from './holding-plan.ts';

/** Wakes for the Proposed revisions of a namespace when a plan that may have held them has ended. */
export const releasedRevisions: Source<ObjectKey> = {
  start({ informer, enqueue }) {
    const revisions = informer(packageRevisionKind);
    const wake = ({ metadata }: WavePlan) => {
      for (const object of revisions.inNamespace(metadata.namespace ?? ''))
        if (object.spec.lifecycle === 'Proposed') enqueue(keyOf(object));
    };
    return informer(wavePlanKind).addHandler((event) => {
      const wasActive = event.type === 'update' ? isActive(event.old) : event.type === 'delete';
      const isOver = event.type === 'delete' || !isActive(event.object);
      const isOther = event.type === 'update' && event.old.metadata.generation !== event.object.metadata.generation;
      if (wasActive && (isOver || isOther)) wake(event.object);
    });
  },
};
