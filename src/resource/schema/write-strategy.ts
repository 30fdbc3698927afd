import type { FieldCause } from '../object/invalid-object.ts';
import type { KubernetesObject } from '../object/object.ts';

/**
 * The kind-specific part of writing objects, like the strategies of Kubernetes' registries. A storage applies it;
 * `storage/memory/object-rules.ts` has the rules for all kinds. All functions are pure.
 */
export interface WriteStrategy<T extends KubernetesObject = KubernetesObject> {
  /** True if the status is written through a sub-resource only. */
  readonly hasStatus: boolean;
  /** True if names are derived from the content: what a client gives is ignored. */
  readonly serverNamed: boolean;
  /** True if a client that replaces an object over the API must name its version. */
  readonly updatesNeedVersion: boolean;
  /** True if an update does not conflict with writes of the status since its author read the object. */
  readonly updatesIgnoreStatusWrites: boolean;

  /** Converts a valid object to the canonical form that is stored. */
  canonicalize(object: T): T;
  /** The causes by which a canonical object is invalid: rules about several fields at once. Kinds of Sluice have none about the status. */
  validate(object: T): readonly FieldCause[];
  /** Adds to an object that is about to be stored for the first time, with its name, what only the server may set. */
  prepareForCreate(object: T): T;
  /**
   * Replaces what an object says about the user who created it by the user of an authenticated request, or by what `old` says. Absent for a kind
   * whose objects say nothing about that.
   */
  withCreator?(object: T, user: string, old: T | undefined): T;
  /** The causes that forbid to replace `old` by `next`, two valid objects. */
  validateUpdate(old: T, next: T): readonly FieldCause[];
  /**
   * True for an object that must stay after its deletion was requested, regardless of its finalizers. Absent if only finalizers
   * delay a deletion. With it, spec.finalizers can be written only through the sub-resource `finalize`.
   */
  delaysDeletion?(object: T): boolean;
  /** Returns why an object must never be deleted, as the end of a sentence; undefined if it may be deleted. */
  deletionRefusal(object: T): string | undefined;
}

/**
 * Creates a strategy with the defaults of Kubernetes for everything that is not given: every valid object may be written and
 * deleted.
 */
export function writeStrategy<T extends KubernetesObject>(given: Partial<WriteStrategy<T>>): WriteStrategy<T> {
  return {
    hasStatus: false,
    serverNamed: false,
    updatesNeedVersion: false,
    updatesIgnoreStatusWrites: false,
    canonicalize: (object) => object,
    validate: () => [],
    prepareForCreate: (object) => object,
    validateUpdate: () => [],
    deletionRefusal: () => undefined,
    ...given,
  };
}
