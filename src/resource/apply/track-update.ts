import type { KubernetesObject, ManagedFieldsEntry } from '../object/object.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { compareFields } from './compare-fields.ts';
import { difference, isEmpty, NO_FIELDS, union } from './field-set.ts';
import { limitUpdaters } from './limit-updaters.ts';
import { ownableFields, type WrittenPart } from './ownable-fields.ts';
import { type Owner, type Ownership, readOwnerships, sameOwner, withFields, writeOwnerships } from './owners.ts';

export interface TrackedUpdate extends WrittenPart {
  /** The stored object; undefined for a create. */
  readonly before: KubernetesObject | undefined;
  /** The object to store, with defaults; its managedFields are those that the client sent. */
  readonly after: KubernetesObject;
  /** Of the whole object. */
  readonly schema: StructuralSchema;
  /** The name that the writer gives itself. */
  readonly manager: string;
  /** The version of the kind that the fields are from. */
  readonly apiVersion: string;
  /** RFC 3339 with seconds. */
  readonly now: string;
}

/**
 * Computes `managedFields` after a write other than apply. Added and changed fields move to the manager's entry, removed fields are
 * removed from all entries; other entries stay unchanged. Fields of an untracked object stay untracked until the next apply. A client
 * can set managedFields, and end the tracking with `[]` or `[{}]`; malformed values, and values that are sent to a sub-resource, are
 * ignored.
 */
export function trackUpdate(update: TrackedUpdate): readonly ManagedFieldsEntry[] {
  const { before, after, schema, manager, apiVersion, now, subResource } = update;
  const ownerships = ownershipsToStartFrom(update);
  if (ownerships.length === 0 && before !== undefined) return [];
  const { changed, removed } = compareFields(ownableFields(before, update), ownableFields(after, update), schema);
  const rest = ownerships.map((owner) => withFields(owner, difference(difference(owner.fields, changed), removed)));
  if (isEmpty(changed)) return writeOwnerships(limitUpdaters(rest));
  const self: Owner = { manager, operation: 'Update', apiVersion, subresource: subResource || undefined };
  const previous = rest.find((owner) => sameOwner(owner, self));
  const fields = union(changed, previous?.fields ?? NO_FIELDS);
  const others = rest.filter((owner) => owner !== previous && !isEmpty(owner.fields));
  return writeOwnerships(limitUpdaters([...others, { ...self, time: now, fields }]));
}

function ownershipsToStartFrom({ before, after, schema, subResource }: TrackedUpdate): readonly Ownership[] {
  const sent = subResource ? undefined : after.metadata.managedFields;
  if (sent !== undefined) {
    if (isReset(sent)) return [];
    const ownerships = readOwnerships(sent, schema);
    if (ownerships !== undefined) return ownerships;
  }
  return readOwnerships(before?.metadata.managedFields ?? [], schema) ?? [];
}

function isReset(entries: readonly ManagedFieldsEntry[]): boolean {
  const [first] = entries;
  return first === undefined || (entries.length === 1 && Object.keys(first).length === 0);
}
