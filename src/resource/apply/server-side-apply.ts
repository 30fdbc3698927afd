import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject, ManagedFieldsEntry } from '../object/object.ts';
import { isJsonObject } from '../object/own-property.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { applyConflict, type Conflict } from './apply-conflict.ts';
import { checkedConfiguration } from './checked-configuration.ts';
import { compareFields, type FieldChanges } from './compare-fields.ts';
import { difference, type FieldSet, intersection, isEmpty, sameFields, union } from './field-set.ts';
import { fieldSetOf } from './field-set-of.ts';
import { mergeApplied } from './merge-applied.ts';
import { isPart, ownableFields, UNOWNED_FIELDS, type WrittenPart } from './ownable-fields.ts';
import { type Owner, type Ownership, readOwnerships, sameOwner, withFields, writeOwnerships } from './owners.ts';
import { withoutFields } from './without-fields.ts';

/** The owner of fields that existed before field ownership was tracked. */
const BEFORE_FIRST_APPLY = 'before-first-apply';

export interface ApplyRequest extends WrittenPart {
  /** The stored object; undefined creates one. */
  readonly live: KubernetesObject | undefined;
  /** The fields that the manager applies, and no more. */
  readonly applied: unknown;
  /** Of the whole object. */
  readonly schema: StructuralSchema;
  /** The name that the writer gives itself. */
  readonly manager: string;
  /** Takes fields away from other managers instead of failing. */
  readonly force: boolean;
  /** The version of the kind that `applied` is written in. */
  readonly apiVersion: string;
  /** RFC 3339 with seconds. */
  readonly now: string;
}

export interface ApplyResult {
  /**
   * The object to store, including `metadata.managedFields`; not validated, without new defaults. `live` itself if nothing changes.
   */
  readonly object: KubernetesObject;
  readonly managedFields: readonly ManagedFieldsEntry[];
}

/**
 * Server-side apply, as Kubernetes does it (structured merge). The configuration is merged into the live object. Fields that the
 * manager applied before and omits now are removed if it has no other owner. A field that another manager owns and that would get
 * another value is a Conflict with ApplyConflictDetails; forced, the manager becomes its owner. Applying the current value shares the
 * field. Throws BadRequest or InvalidInput for a configuration that cannot be applied.
 */
export function serverSideApply(request: ApplyRequest): ApplyResult {
  const { live, schema, manager, apiVersion, now, subResource } = request;
  const configuration = writtenPart(checkedConfiguration(request.applied, schema), request);
  const own = difference(fieldSetOf(ownableFields(configuration, request), schema), UNOWNED_FIELDS);
  const self: Owner = { manager, operation: 'Apply', apiVersion, subresource: subResource || undefined };

  const ownerships = ownershipsOf(live, request);
  const previous = ownerships.find((ownership) => sameOwner(ownership, self));
  const others = ownerships.filter((ownership) => ownership !== previous);
  const merged = mergeApplied(live ?? {}, configuration, schema);
  const object = withoutLeftFields(merged, schema, previous, own, others) as KubernetesObject;

  const changes = compareFields(ownableFields(live, request), ownableFields(object, request), schema);
  const rest = afterChanges(others, changes, request.force);
  const managedFields = writeOwnerships([
    ...rest,
    ownershipNow(previous, { ...self, time: now, fields: own }, object === live),
  ]);
  return { object: withManagedFields(object, managedFields), managedFields };
}

/** The part of a configuration that the request writes. The identity stays: it is a precondition. */
function writtenPart(configuration: Record<string, unknown>, request: ApplyRequest): Record<string, unknown> {
  const { metadata } = configuration;
  if (isJsonObject(metadata) && Object.hasOwn(metadata, 'managedFields'))
    throw new SluiceError('BadRequest', 'metadata.managedFields must be nil');
  const part: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(configuration))
    if (field === 'apiVersion' || field === 'kind' || isPart(field, request)) part[field] = value;
  if (request.subResource === 'status' && isJsonObject(metadata)) {
    const { name, namespace, uid, resourceVersion } = metadata;
    part.metadata = Object.fromEntries(
      Object.entries({ name, namespace, uid, resourceVersion }).filter(([, value]) => value !== undefined),
    );
  }
  return part;
}

/**
 * Returns the owners of the fields of the live object. Fields of an object that was never tracked belong to
 * BEFORE_FIRST_APPLY.
 */
function ownershipsOf(live: KubernetesObject | undefined, request: ApplyRequest): readonly Ownership[] {
  if (live === undefined) return [];
  const known = readOwnerships(live.metadata.managedFields ?? [], request.schema) ?? [];
  if (known.length > 0) return known;
  const { schema, apiVersion, now, subResource } = request;
  const { changed } = compareFields(ownableFields(undefined, request), ownableFields(live, request), schema);
  const owner: Owner = {
    manager: BEFORE_FIRST_APPLY,
    operation: 'Update',
    apiVersion,
    subresource: subResource || undefined,
  };
  return [{ ...owner, time: now, fields: changed }];
}

function withoutLeftFields(
  merged: unknown,
  schema: StructuralSchema,
  previous: Ownership | undefined,
  own: FieldSet,
  others: readonly Ownership[],
): unknown {
  if (previous === undefined || sameFields(previous.fields, own)) return merged;
  const left = difference(previous.fields, own);
  if (isEmpty(left)) return merged;
  const kept = others.reduce((kept, other) => union(kept, other.fields), union(own, UNOWNED_FIELDS));
  return withoutFields(merged, schema, left, kept);
}

/**
 * Returns the fields that the other owners keep. Throws the Conflict if they would lose a field and the apply is not
 * forced.
 */
function afterChanges(others: readonly Ownership[], changes: FieldChanges, force: boolean): Ownership[] {
  const conflicts: Conflict[] = [];
  const rest = others.map((owner) => {
    const taken = intersection(owner.fields, changes.changed);
    if (!isEmpty(taken)) conflicts.push({ owner, fields: taken });
    return withFields(owner, difference(difference(owner.fields, taken), changes.removed));
  });
  if (conflicts.length > 0 && !force) throw applyConflict(conflicts);
  return rest;
}

/** The manager's entry. It keeps its time if neither the object nor what the manager owns is another. */
function ownershipNow(previous: Ownership | undefined, next: Ownership, sameObject: boolean): Ownership {
  if (previous === undefined || !sameFields(previous.fields, next.fields)) return next;
  const { apiVersion, time } = next;
  return sameObject && previous.apiVersion === apiVersion ? previous : { ...previous, apiVersion, time };
}

function withManagedFields(object: KubernetesObject, managedFields: readonly ManagedFieldsEntry[]): KubernetesObject {
  // A configuration need not have metadata: the URL names the object.
  const before = (object.metadata as Partial<KubernetesObject>['metadata'])?.managedFields;
  const same =
    before?.length === managedFields.length && before.every((entry, index) => entry === managedFields[index]);
  return same ? object : { ...object, metadata: { ...object.metadata, managedFields } };
}
