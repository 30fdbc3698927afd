/** Makes a type read-only at every depth. Objects that were read are frozen, and so are their types. */
export type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** The fields that one writer owns, as server-side apply records them. */
export interface ManagedFieldsEntry {
  /** Name of the field manager. */
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  /** The version of the kind that the field names are from. */
  readonly apiVersion: string;
  /** RFC 3339. */
  readonly time?: string | undefined;
  readonly fieldsType: 'FieldsV1';
  /** `{"f:spec": {"f:color": {}}}`. */
  readonly fieldsV1: Readonly<Record<string, unknown>>;
  readonly subresource?: string | undefined;
}

/**
 * Metadata as a client writes it. The storage sets uid, resourceVersion, generation, creationTimestamp and
 * deletionTimestamp; what a client puts there is either a precondition (uid, resourceVersion) or ignored.
 */
export interface ObjectMeta {
  readonly name: string;
  readonly generateName?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  /** Opaque. Compare only for equality; another storage writes it in another form. */
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  /** RFC 3339, UTC, seconds. */
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly finalizers?: readonly string[] | undefined;
  /** Absent in a write: they stay as they are. Empty: they are removed. */
  readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
}

/** Metadata of an object that a storage returned. */
export interface StoredMeta extends ObjectMeta {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** An object as a storage returns it: deeply frozen, with the metadata that the storage keeps. */
export type Stored<T extends KubernetesObject = KubernetesObject> = T & { readonly metadata: StoredMeta };

/** The identity of an object inside its kind. A cluster-scoped object has no namespace. */
export interface ObjectKey {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface GroupVersionKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The namespace of a namespaced object that names none. */
export const DEFAULT_NAMESPACE = 'default';

/** `group/version`, or the version alone for the core group. */
export function apiVersionOf(gvk: Pick<GroupVersionKind, 'group' | 'version'>): string {
  return gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`;
}

/** Splits an object's apiVersion and kind. */
export function groupVersionKindOf(object: { readonly apiVersion: string; readonly kind: string }): GroupVersionKind {
  const slash = object.apiVersion.indexOf('/');
  return slash < 0
    ? { group: '', version: object.apiVersion, kind: object.kind }
    : { group: object.apiVersion.slice(0, slash), version: object.apiVersion.slice(slash + 1), kind: object.kind };
}

/** The key of an object, with the namespace it carries. */
export function keyOf(object: { readonly metadata: ObjectMeta }): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}

/**
 * Formats a key as `namespace/name`, or as the name alone without a namespace. Names contain no slash, so the form is
 * unambiguous.
 */
export function keyText(key: ObjectKey): string {
  return key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;
}

/** Freezes a value and its children in place, and returns it. Skips values that are already frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return value;
}
