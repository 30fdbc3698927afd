import { type Claim, claimFromObject, ownerText } from '../../../../src/allocation/claim.ts';
import type { Allocated } from '../../../../src/allocation/outcome.ts';
import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import { DEFAULT_NAMESPACE } from '../../../../src/resource/object/object.ts';
import { ownerOf, statusOf } from './ip-claim.ts';

/** An IPClaim in a draft. */
export interface PackageClaim {
  readonly object: KrmObject;
  readonly type: string;
  /** Equal for claims of the same owner for the same value. */
  readonly key: string;
  /** The request, or the problem that makes it invalid. */
  readonly request: Claim | { readonly problem: string };
}

/** The value of a claim, or the reason for its absence. */
export type ClaimOutcome =
  | { readonly allocated: Allocated; readonly refused?: undefined }
  | {
      readonly refused: { readonly reason: string; readonly message: string; readonly retryAt?: number };
      readonly allocated?: undefined;
    };

/** The condition and the status of one claim. */
export interface ClaimResult {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  /** The status of the object, undefined to remove it; absent if it stays as it is. */
  readonly written?: { readonly value: Readonly<Record<string, unknown>> | undefined };
}

/** Names of repositories are unique in their namespace; owners of claims must differ across all namespaces. */
export function ownerRepository({ namespace, key }: PackageRevision): string {
  return namespace === DEFAULT_NAMESPACE ? key.repository : `${namespace}/${key.repository}`;
}

export function readClaim(object: KrmObject, revision: PackageRevision): PackageClaim {
  const request = claimFromObject(object.value, ownerRepository(revision), revision.key.package);
  const { status: _status, ...requested } = object.value;
  const owner = 'problem' in request ? '' : ownerText(request.owner);
  return { object, type: formatConditionType(object), key: `${owner} ${canonicalJson(requested)}`, request };
}

/**
 * Without a value the status stays, so that no claim loses its address while a pool is briefly absent; unless the value in the
 * status is `foreign`: it belongs to an earlier owner.
 */
export function resultFor({ object, type }: PackageClaim, outcome: ClaimOutcome, foreign: boolean): ClaimResult {
  const { prefix: oldPrefix, gateway: oldGateway, ...rest } = statusOf(object);
  if (outcome.refused !== undefined) {
    const { reason, message } = outcome.refused;
    const result = { type, status: 'False', reason, message } as const;
    if (!foreign || (oldPrefix === undefined && oldGateway === undefined)) return result;
    return { ...result, written: { value: Object.keys(rest).length === 0 ? undefined : rest } };
  }
  const { prefix, gateway, pool } = outcome.allocated;
  const from = gateway === undefined ? '' : `, gateway ${gateway}`;
  return {
    type,
    status: 'True',
    reason: ownerOf(object) ?? 'Allocated',
    message: `${prefix}${from}, from ${pool.name}`,
    ...(prefix === oldPrefix && gateway === oldGateway
      ? {}
      : { written: { value: { prefix, ...(gateway === undefined ? {} : { gateway }), ...rest } } }),
  };
}

/**
 * One result for each type. A condition type does not carry the namespace, so two claims can share one, which is True only if all
 * of them have a value.
 */
export function mergeResults(results: readonly ClaimResult[]): ClaimResult[] {
  const merged = new Map<string, ClaimResult>();
  for (const result of results) {
    const other = merged.get(result.type);
    if (other === undefined || (other.status === 'True' && result.status === 'False')) merged.set(result.type, result);
    else if (other.status === result.status && other.message !== result.message)
      merged.set(result.type, { ...other, message: `${other.message}; ${result.message}` });
  }
  return [...merged.values()];
}
