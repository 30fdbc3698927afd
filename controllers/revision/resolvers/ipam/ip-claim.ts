import { formatConditionType } from '../../../../src/package/model/condition-type.ts';
import { isRecord, type KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { ipClaimKind } from '../../../../src/resource/kinds/ipam.ts';

const { apiVersion: API_VERSION, kind: KIND } = ipClaimKind;

/** What a cheap look at a file searches for. */
export const IPAM_GROUP: string = ipClaimKind.group;

/** The condition types of all IP claims. */
export const IP_CLAIM_TYPES = `${formatConditionType({ apiVersion: API_VERSION, kind: KIND, name: '' })}*`;

/** Nephio's functions set it on what is no longer wanted instead of removing it. */
const DELETE_ANNOTATION = 'specializer.nephio.org/delete';
/** The condition type of the object that a claim was made for. */
const OWNER_ANNOTATION = 'specializer.nephio.org/owner';

export function isIpClaim(object: KrmObject): boolean {
  return object.apiVersion === API_VERSION && object.kind === KIND && object.name !== '';
}

/** True for a claim that its owner gave up: nobody resolves it, and it holds nothing. */
export function isGivenUp(object: KrmObject): boolean {
  return annotation(object, DELETE_ANNOTATION) === 'true';
}

/** Nephio keeps the owner of a claim as the reason of its condition, and builds a graph from that. */
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
