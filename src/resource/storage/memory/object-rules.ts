import { SluiceError } from '../../../foundation/sluice-error.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import { invalidObject, invalidValue } from '../../object/invalid-object.ts';
import type { KubernetesObject, ObjectMeta, Stored, StoredMeta } from '../../object/object.ts';
import { sameValue } from '../../object/same-value.ts';
import type { KindIdentity } from '../../schema/kind-identity.ts';
import type { WriteStrategy } from '../../schema/write-strategy.ts';
import { type DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../storage.ts';

/** What every storage of objects as they are written keeps to. All functions are pure. */

/** The parts of a kind that these rules need: its names for messages, and its strategy. */
type WrittenKind<T extends KubernetesObject> = KindIdentity & { readonly strategy: WriteStrategy<T> };

const GENERATED_SUFFIX_LENGTH = 5;
/** So that a generated name is a host name too. */
const MAX_GENERATED_PREFIX = 63 - GENERATED_SUFFIX_LENGTH;

/** The object that a create stores, without its resourceVersion. `uuid` makes the uid and the end of a generated name. */
export function createdObject<T extends KubernetesObject>(
  kind: WrittenKind<T>,
  object: T,
  now: number,
  uuid: () => string,
): T {
  const { deletionTimestamp: _never, ...metadata } = object.metadata;
  const { status: _ignored, ...content } = object;
  const made = {
    ...(kind.strategy.hasStatus ? content : object),
    metadata: {
      ...metadata,
      name: object.metadata.name || generatedName(kind, object, uuid),
      uid: uuid(),
      creationTimestamp: timestamp(now),
      ...(object.spec === undefined ? {} : { generation: 1 }),
    },
  } as T;
  return kind.strategy.prepareForCreate(made);
}

/** The object that an update stores, with the old resourceVersion. */
export function updatedObject<T extends KubernetesObject>(kind: WrittenKind<T>, old: Stored<T>, object: T): T {
  refuseDeletionTime(kind, old, object);
  refuseLateFinalizers(kind, old, object);
  const metadata = { ...object.metadata, ...serverMeta(old.metadata), ...keptOwners(old, object) };
  const kept = {
    ...(kind.strategy.hasStatus && { status: old.status }),
    ...(kind.strategy.delaysDeletion !== undefined && { spec: old.spec }),
  };
  const next = { ...object, ...kept, metadata } as T;
  const causes = kind.strategy.validateUpdate(old, next);
  if (causes.length > 0) throw invalidObject(`${subjectOf(kind)} ${JSON.stringify(old.metadata.name)}`, causes);
  if (old.spec === undefined || sameValue(content(old), content(next))) return next;
  return { ...next, metadata: { ...next.metadata, generation: (old.metadata.generation ?? 0) + 1 } };
}

/** The object that a write of the status stores. Labels and annotations stay; the owners of fields are written again. */
export function withStatus<T extends KubernetesObject>(old: Stored<T>, object: T): T {
  return { ...old, status: object.status, metadata: { ...old.metadata, ...keptOwners(old, object) } };
}

/** Marks an object whose deletion was requested; its finalizers delay the deletion. */
export function markedForDeletion<T extends KubernetesObject>(old: Stored<T>, options: DeleteOptions, now: number): T {
  const deletionTimestamp = old.metadata.deletionTimestamp ?? timestamp(now);
  const { propagationPolicy } = options;
  const wanted =
    propagationPolicy === 'Foreground'
      ? FOREGROUND_FINALIZER
      : propagationPolicy === 'Orphan'
        ? ORPHAN_FINALIZER
        : undefined;
  const own = (old.metadata.finalizers ?? []).filter((one) => one !== FOREGROUND_FINALIZER && one !== ORPHAN_FINALIZER);
  const before = old.metadata.finalizers ?? [];
  // The policy of the first request applies once the deletion is in progress.
  const finalizers =
    old.metadata.deletionTimestamp !== undefined ? before : wanted === undefined ? before : [...own, wanted];
  return {
    ...old,
    metadata: { ...old.metadata, deletionTimestamp, ...(finalizers.length === 0 ? {} : { finalizers }) },
  };
}

/** Refused if the kind keeps the object permanently. */
export function refuseForbiddenDeletion<T extends KubernetesObject>(kind: WrittenKind<T>, object: T): void {
  const why = kind.strategy.deletionRefusal(object);
  if (why === undefined) return;
  const { name } = object.metadata;
  throw new SluiceError('Refused', `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${why}`);
}

/** True if an object whose deletion was requested must stay for the time being. */
export function isDeletionDelayed<T extends KubernetesObject>(
  { strategy }: Pick<WrittenKind<T>, 'strategy'>,
  object: T,
): boolean {
  return (object.metadata.finalizers?.length ?? 0) > 0 || (strategy.delaysDeletion?.(object) ?? false);
}

/** Throws Conflict if a given precondition does not match. */
export function checkPreconditions(
  kind: Pick<KindIdentity, 'plural' | 'group'>,
  old: Stored,
  expected: Pick<ObjectMeta, 'uid' | 'resourceVersion'>,
): void {
  const { uid, resourceVersion, name } = old.metadata;
  const refuse = (cause: string): never => {
    throw new SluiceError(
      'Conflict',
      `Operation cannot be fulfilled on ${resourceName(kind)} ${JSON.stringify(name)}: ${cause}`,
    );
  };
  if (expected.uid !== undefined && expected.uid !== uid)
    refuse(
      `the UID in the precondition (${expected.uid}) does not match the UID in record (${uid}). ` +
        'The object might have been deleted and then recreated',
    );
  if (expected.resourceVersion !== undefined && expected.resourceVersion !== resourceVersion)
    refuse('the object has been modified; please apply your changes to the latest version and try again');
}

/** `widgets.example.org`, or the plural alone for the core group. */
export function resourceName(kind: Pick<KindIdentity, 'plural' | 'group'>): string {
  return kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
}

/** NotFound in the words of Kubernetes. */
export function notFound(kind: Pick<KindIdentity, 'plural' | 'group'>, name: string): SluiceError {
  return new SluiceError('NotFound', `${resourceName(kind)} ${JSON.stringify(name)} not found`);
}

function subjectOf(kind: KindIdentity): string {
  return kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
}

function generatedName(kind: KindIdentity, object: KubernetesObject, uuid: () => string): string {
  const prefix = object.metadata.generateName;
  if (prefix === undefined)
    throw invalidObject(kind.kind, [invalidValue(['metadata', 'name'], '', 'name or generateName is required')]);
  return prefix.slice(0, MAX_GENERATED_PREFIX) + uuid().replaceAll('-', '').slice(0, GENERATED_SUFFIX_LENGTH);
}

/** Only a deletion marks an object. The mark of an object that has one is kept, whatever an update contains. */
function refuseDeletionTime(kind: KindIdentity, old: Stored, next: KubernetesObject): void {
  const { deletionTimestamp } = next.metadata;
  if (old.metadata.deletionTimestamp !== undefined || deletionTimestamp === undefined) return;
  throw invalidObject(`${subjectOf(kind)} ${JSON.stringify(old.metadata.name)}`, [
    invalidValue(['metadata', 'deletionTimestamp'], deletionTimestamp, 'field is immutable'),
  ]);
}

function refuseLateFinalizers(kind: KindIdentity, old: Stored, next: KubernetesObject): void {
  if (old.metadata.deletionTimestamp === undefined) return;
  const known = old.metadata.finalizers ?? [];
  const added = (next.metadata.finalizers ?? []).filter((finalizer) => !known.includes(finalizer));
  if (added.length > 0)
    throw invalidObject(`${kind.kind} ${JSON.stringify(old.metadata.name)}`, [
      invalidValue(['metadata', 'finalizers'], added, 'no finalizer can be added while the object is being deleted'),
    ]);
}

/** Metadata that a client cannot change. */
function serverMeta(metadata: StoredMeta): StoredMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, generation, deletionTimestamp } = metadata;
  return { name, namespace, uid, resourceVersion, creationTimestamp, generation, deletionTimestamp };
}

/** The owners of fields stay as they are if a writer sends none. */
function keptOwners(old: Stored, object: KubernetesObject): Pick<ObjectMeta, 'managedFields'> {
  const { managedFields = old.metadata.managedFields } = object.metadata;
  return { managedFields: managedFields?.length === 0 ? undefined : managedFields };
}

/**
 * The content whose changes increase the generation: everything besides metadata and status, and the apiVersion, which
 * determines the schema.
 */
function content(object: KubernetesObject): object {
  const { apiVersion: _version, metadata: _metadata, status: _status, ...rest } = object;
  return rest;
}
