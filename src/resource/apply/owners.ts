import type { ManagedFieldsEntry } from '../object/object.ts';
import { fieldSchema, itemSchema } from '../schema/structural/child-schema.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldElement } from './field-element.ts';
import { type FieldSet, fieldSet, isEmpty, LEAF } from './field-set.ts';
import { fromFieldsV1, toFieldsV1 } from './fields-v1.ts';
import { isUnknown } from './shared-shape.ts';

/** A writer, identified by the fields that distinguish the entries of `managedFields`. */
export interface Owner {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string | undefined;
}

/** An owner with its fields: one entry of `managedFields`. */
export interface Ownership extends Owner {
  readonly time: string | undefined;
  readonly fields: FieldSet;
  /** The entry that was read, as long as its fields are unchanged. */
  readonly entry?: ManagedFieldsEntry;
}

/**
 * True if two entries have the same owner. A manager that applies is the same owner with another version of the kind.
 */
export function sameOwner(left: Owner, right: Owner): boolean {
  return (
    left.manager === right.manager &&
    left.operation === right.operation &&
    left.subresource === right.subresource &&
    (left.operation === 'Apply' || left.apiVersion === right.apiVersion)
  );
}

/** Reads `managedFields`; undefined if an entry is invalid. */
export function readOwnerships(
  entries: readonly ManagedFieldsEntry[],
  schema: StructuralSchema,
): Ownership[] | undefined {
  const ownerships: Ownership[] = [];
  for (const entry of entries) {
    const { manager = '', operation, apiVersion, time, fieldsType } = entry;
    if (operation !== 'Apply' && operation !== 'Update') return undefined;
    if (typeof apiVersion !== 'string' || apiVersion === '' || fieldsType !== 'FieldsV1') return undefined;
    const subresource = entry.subresource || undefined;
    const written = fromFieldsV1(entry.fieldsV1);
    const ownership = withFields(
      { manager, operation, apiVersion, subresource, time, fields: written, entry },
      fieldsInSchema(written, schema),
    );
    const same = ownerships.findIndex((other) => sameOwner(other, ownership));
    if (same < 0) ownerships.push(ownership);
    else ownerships[same] = ownership;
  }
  return ownerships;
}

/** Encodes `managedFields` in the order of Kubernetes. Skips owners without fields. */
export function writeOwnerships(ownerships: readonly Ownership[]): readonly ManagedFieldsEntry[] {
  return ownerships
    .filter((ownership) => !isEmpty(ownership.fields))
    .sort(byOperationAndTime)
    .map(toEntry);
}

/** The same owner with other fields. */
export function withFields(ownership: Ownership, fields: FieldSet): Ownership {
  if (fields === ownership.fields) return ownership;
  const { entry: _, ...owner } = ownership;
  return { ...owner, fields };
}

/** Seconds since the epoch; 0 for an entry without a time. */
export function secondsOf(ownership: Ownership): number {
  const milliseconds = ownership.time === undefined ? 0 : Date.parse(ownership.time);
  return Number.isNaN(milliseconds) ? 0 : Math.floor(milliseconds / 1000);
}

function toEntry(ownership: Ownership): ManagedFieldsEntry {
  const { manager, operation, apiVersion, time, fields, subresource, entry } = ownership;
  if (entry?.time === time && entry?.apiVersion === apiVersion) return entry;
  return {
    manager,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: entry?.fieldsV1 ?? toFieldsV1(fields),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function byOperationAndTime(left: Ownership, right: Ownership): number {
  return (
    compare(left.operation, right.operation) ||
    secondsOf(left) - secondsOf(right) ||
    compare(left.manager, right.manager) ||
    compare(left.apiVersion, right.apiVersion) ||
    compare(left.subresource ?? '', right.subresource ?? '')
  );
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/**
 * Adapts fields that were recorded with an older schema to this one: an owner of a part of a value that can no longer be shared
 * owns the whole value.
 */
function fieldsInSchema(set: FieldSet, schema: StructuralSchema): FieldSet {
  let children: Map<FieldElement, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    if (child.children.size === 0) continue;
    const key = element.startsWith('f:') ? element.slice(2) : undefined;
    if (key !== undefined && isUnknown(schema, key)) continue;
    const ofChild = key === undefined ? itemSchema(schema) : fieldSchema(schema, key);
    const adapted = isShared(child, ofChild) ? fieldsInSchema(child, ofChild) : LEAF;
    if (adapted === child) continue;
    children ??= new Map(set.children);
    children.set(element, adapted);
  }
  return children === undefined ? set : fieldSet(set.owned, children);
}

/** True if the schema permits a value with the children of the path. */
function isShared(set: FieldSet, schema: StructuralSchema): boolean {
  const [element = ''] = set.children.keys();
  if (!element.startsWith('f:')) return (schema['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic';
  return (schema.type ?? 'object') === 'object' && schema['x-kubernetes-map-type'] !== 'atomic';
}
