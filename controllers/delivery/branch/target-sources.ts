import { specOrMetadataChanged } from '../../../src/controller/predicates.ts';
import { type Source, toObject, watchKind } from '../../../src/controller/source.ts';
import { SYSTEM_NAMESPACE } from '../../../src/resource/kinds/core/namespace.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import {
  type DeliveryTarget,
  deliveryTargetKind,
} from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { isConditionTrue } from '../../../src/resource/object/condition.ts';
import { keyOf, type ObjectKey } from '../../../src/resource/object/object.ts';
import { sameValue } from '../../../src/resource/object/same-value.ts';

/**
 * Wakes for a target when it or its rollbacks change, when a published revision of a package that it may select is added, deleted or changed, and
 * when a repository becomes ready or changes in more than its status. A Freeze wakes for the targets that it stops.
 */
export function targetSources(systemNamespace: string = SYSTEM_NAMESPACE): Source<ObjectKey>[] {
  return [
    watchKind(deliveryTargetKind, {
      predicate: (event) =>
        specOrMetadataChanged(event) ||
        (event.type === 'update' && !sameValue(event.object.status?.rollbacks, event.old.status?.rollbacks)),
      map: toObject,
    }),
    {
      start({ informer, enqueue }) {
        const targets = informer(deliveryTargetKind);
        const wake = (mayConcern: (target: DeliveryTarget) => boolean) => {
          for (const target of targets.list()) if (mayConcern(target)) enqueue(keyOf(target));
        };
        const ends = [
          informer(packageRevisionKind).addHandler((event) => {
            const isMeant = isDelivered(event.object) || (event.type === 'update' && isDelivered(event.old));
            if (isMeant) wake(({ spec }) => maySelect(spec.selector, event.object.spec));
          }),
          informer(freezeKind).addHandler((event) => {
            const { namespace } = event.object.metadata;
            if (!specOrMetadataChanged(event)) return;
            for (const target of targets.list())
              if (namespace === systemNamespace || target.metadata.namespace === namespace) enqueue(keyOf(target));
          }),
          informer(repositoryKind).addHandler((event) => {
            const isReady = isConditionTrue(event.object.status?.conditions, 'Ready');
            const wasReady = event.type === 'update' && isConditionTrue(event.old.status?.conditions, 'Ready');
            if (specOrMetadataChanged(event) || isReady !== wasReady) wake(() => true);
          }),
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    },
  ];
}

function isDelivered({ spec }: PackageRevision): boolean {
  return (spec.lifecycle === 'Published' || spec.lifecycle === 'DeletionProposed') && (spec.revision ?? 0) > 0;
}

/** Compares names alone; labels are evaluated when the target is reconciled. */
function maySelect(selector: DeliveryTarget['spec']['selector'], of: PackageRevision['spec']): boolean {
  const { repositories, packages } = selector;
  return (repositories?.includes(of.repository) ?? true) && (packages?.includes(of.packageName) ?? true);
}
