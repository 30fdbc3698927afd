import { isJsonObject } from '../object/own-property.ts';
import { fieldSet, LEAF } from './field-set.ts';

/** The part of an object that a request writes. */
export interface WrittenPart {
  /** The sub-resource that is written, such as `status`; absent for the object itself. */
  readonly subResource?: string | undefined;
  /** True if the status of the kind is written through its sub-resource only. */
  readonly hasStatus: boolean;
}

/** Metadata that identifies the object or that the storage sets. */
const UNOWNED_METADATA = [
  'name',
  'namespace',
  'generateName',
  'uid',
  'selfLink',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
];

/** Fields without owners, which no apply removes; `metadata` itself is one of them, independent of its fields. */
export const UNOWNED_FIELDS = fieldSet(
  false,
  new Map([
    ['f:apiVersion', LEAF],
    ['f:kind', LEAF],
    ['f:metadata', fieldSet(true, new Map(UNOWNED_METADATA.map((field) => [`f:${field}`, LEAF])))],
  ]),
);

/** The fields of an object that a request for this part can own; `metadata` is always there. */
export function ownableFields(object: object | undefined, part: WrittenPart): Record<string, unknown> {
  const ownable: Record<string, unknown> = { metadata: {} };
  for (const [field, value] of Object.entries(object ?? {})) {
    if (field === 'metadata') {
      if (part.subResource !== 'status' && isJsonObject(value)) ownable.metadata = ownableMetadata(value);
    } else if (field !== 'apiVersion' && field !== 'kind' && isPart(field, part)) ownable[field] = value;
  }
  return ownable;
}

/** True for a top-level field that a request for this part writes. */
export function isPart(field: string, { subResource, hasStatus }: WrittenPart): boolean {
  if (subResource === 'status') return field === 'status';
  return field !== 'status' || !hasStatus;
}

function ownableMetadata(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([field]) => !UNOWNED_METADATA.includes(field)));
}
