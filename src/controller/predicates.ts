import type { KubernetesObject } from '../resource/object/object.ts';
import { sameValue } from '../resource/object/same-value.ts';
import type { InformerEvent } from './informer-store.ts';

/** False for updates that leave the spec as it is: a controller that writes the status does not wake itself. */
export function specChanged<T extends KubernetesObject>(event: InformerEvent<T>): boolean {
  if (event.type !== 'update') return true;
  const { old, object } = event;
  return (
    old.metadata.generation !== object.metadata.generation ||
    old.metadata.deletionTimestamp !== object.metadata.deletionTimestamp ||
    (object.metadata.generation === undefined && !sameValue(old.spec, object.spec))
  );
}

/** False for updates that change neither the spec nor labels, annotations, owners or finalizers. */
export function specOrMetadataChanged<T extends KubernetesObject>(event: InformerEvent<T>): boolean {
  if (event.type !== 'update' || specChanged(event)) return true;
  const before = event.old.metadata;
  const after = event.object.metadata;
  return (
    !sameValue(before.labels, after.labels) ||
    !sameValue(before.annotations, after.annotations) ||
    !sameValue(before.ownerReferences, after.ownerReferences) ||
    !sameValue(before.finalizers, after.finalizers)
  );
}
