import type { KubernetesObject, ObjectMeta } from '../../resource/object/object.ts';

/** An object reduced to its metadata, for clients that track objects of every kind. */
export interface PartialObjectMetadata {
  readonly kind: 'PartialObjectMetadata';
  readonly apiVersion: 'meta.k8s.io/v1';
  readonly metadata: ObjectMeta;
}

/** The metadata of a list. */
export interface ListMeta {
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

/** An object's metadata alone. Shares the metadata with the object. */
export function partialMetadata(object: Pick<KubernetesObject, 'metadata'>): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}
