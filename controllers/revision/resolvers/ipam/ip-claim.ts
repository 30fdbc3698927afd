import { isRecord, type KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import { ipClaimKind } from '../../../../src/resource/kinds/ipam/ipam.ts';

const { apiVersion: API_VERSION, kind: KIND } = ipClaimKind;

/** The text that a file with claims must contain: a cheap test before parsing. */
export const IPAM_GROUP: string = ipClaimKind.group;

/** The condition types of all IP claims. */
export const IP_CLAIM_TYPES = `${formatConditionType({ apiVersion: API_VERSION, kind: KIND, name: '' })}*`;

/** Nephio's functions set it on objects that are no longer needed, instead of removing them. */
const DELETE_ANNOTATION = 'specializer.nephio.org/delete';
/** The condition type of the object that a claim was created for. */
const OWNER_ANNOTATION = 'specializer.nephio.org/owner';

export function isIpClaim(object: KrmObject): boolean {
  return object.apiVersion === API_VERSION && object.kind === KIND && object.name !== '';
}

/** True for a claim that its owner abandoned: it is not resolved, and has no value. */
export function isAbandoned(object: KrmObject): boolean {
  return annotation(object, DELETE_ANNOTATION) === 'true';
}

/** Nephio writes the owner of a claim into the reason of its condition, and builds a graph from it. */
export function ownerOf(object: KrmObject): string | undefined {
  return annotation(object, OWNER_ANNOTATION);
}

export function statusOf(object: KrmObject): Readonly<Record<string, unknown>> {
  const { status } = object.value;
  return isRecord(status) ? status : {};
}

function annotation(object: KrmObject, key: string): string | undefined {
  const { metadata } = object.value;
  const annotations = isRecord(metadata) ? metadata.annotations : undefined;
  const value = isRecord(annotations) ? annotations[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}
