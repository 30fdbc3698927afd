import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { serviceKind } from '../../resource/kinds/core/service.ts';
import { PACKAGE_VARIANT_FINALIZER } from '../../resource/kinds/porch/package-variant.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { WAVE_PLAN_FINALIZER, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { fieldPath } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject, ObjectMeta } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';

/** Finalizers of Kubernetes' and Sluice's own controllers, which the controllers of the other server set again. */
const CONTROLLER_FINALIZERS: ReadonlySet<string> = new Set([
  ...['kubernetes', 'foregroundDeletion', 'orphan', 'customresourcecleanup.apiextensions.k8s.io'],
  PACKAGE_VARIANT_FINALIZER,
  WAVE_PLAN_FINALIZER,
]);
/** A copy of the whole object, of Secrets as well. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const NAME_LABEL = 'kubernetes.io/metadata.name';

export interface Portable {
  readonly object: KubernetesObject;
  /** Paths of the fields that the kind does not have here, which `object` therefore lacks. */
  readonly unknownFields: readonly string[];
}

/**
 * The part of an object that means the same on another server, with defaults and in canonical form: without the fields that a server sets
 * (uid, resourceVersion, generation, times, managedFields), without status and requests of the past, and without fields that the kind does not have here. Owner
 * references keep their uid, which `import` replaces.
 */
export function portableObject(kind: Kind, object: KubernetesObject): Portable {
  const { object: known, unknownFields } = kind.parse(object);
  const parsed = kind.strategy.canonicalize(known);
  const { apiVersion, kind: name, metadata, ...content } = parsed as KubernetesObject & { status?: unknown };
  // Without the sub-resource a status is content that a user wrote.
  if (kind.strategy.hasStatus) delete content.status;
  // Their finalizers belong to the server.
  if (kind === namespaceKind) delete content.spec;
  if (kind === repositoryKind) content.spec = withoutRequest(content.spec as Repository['spec']);
  // What it did already is not transferred: it must not begin again by itself.
  if (kind === wavePlanKind) content.spec = { ...(content.spec as object), paused: true };
  if (kind === serviceKind) content.spec = withoutClusterAddress(content.spec as { readonly clusterIP?: string });
  return {
    object: { apiVersion, kind: name, metadata: portableMetadata(kind, metadata), ...content },
    unknownFields: unknownFields.map(fieldPath),
  };
}

function portableMetadata(kind: Kind, metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, ownerReferences = [] } = metadata;
  const { [NAME_LABEL]: ownName, ...others } = metadata.labels ?? {};
  const labels = kind === namespaceKind ? others : (metadata.labels ?? {});
  const { [LAST_APPLIED]: _applied, ...annotations } = metadata.annotations ?? {};
  const finalizers = (metadata.finalizers ?? []).filter((each) => !CONTROLLER_FINALIZERS.has(each));
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(finalizers.length === 0 ? {} : { finalizers }),
    ...(ownerReferences.length === 0 ? {} : { ownerReferences }),
  };
}

/** A synchronisation is requested once. */
function withoutRequest(spec: Repository['spec']): object {
  const { sync, ...rest } = spec;
  if (sync == null) return spec;
  const { runOnceAt: _request, ...kept } = sync;
  return Object.keys(kept).length === 0 ? rest : { ...rest, sync: kept };
}

/** A server assigns the address, unless the Service has none on purpose. */
function withoutClusterAddress(spec: { readonly clusterIP?: string }): object {
  const { clusterIP, ...rest } = spec;
  return clusterIP === 'None' ? spec : rest;
}
