import { type Claim, claimFromObject, ownerText } from '../../../../src/allocation/claim.ts';
import type { Allocated } from '../../../../src/allocation/outcome.ts';
import { canonicalJson } from '../../../../src/foundation/canonical-json.ts';
import { formatConditionType } from '../../../../src/package/model/condition-type.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import type { PackageRevision } from '../../../../src/package/model/package-revision.ts';
import { DEFAULT_NAMESPACE } from '../../../../src/resource/object/object.ts';
import { ownerOf, statusOf } from './ip-claim.ts';

/** An IPClaim as it stands in a draft. */
export interface PackageClaim {
  readonly object: KrmObject;
  readonly type: string;
  /** Equal for claims that ask for the same thing on behalf of the same owner. */
  readonly key: string;
  /** What it asks for, or what is wrong with it. */
  readonly wish: Claim | { readonly problem: string };
}

/** What a claim gets: a value, or the reason why not. */
export type ClaimOutcome =
  | { readonly allocated: Allocated; readonly refused?: undefined }
  | {
      readonly refused: { readonly reason: string; readonly message: string; readonly retryAt?: number };
      readonly allocated?: undefined;
    };

/** What is said and written about one claim. */
export interface Answer {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  /** The status of the object, undefined to remove it; absent if it stays as it is. */
  readonly written?: { readonly value: Readonly<Record<string, unknown>> | undefined };
}

/** Names of repositories are unique in their namespace; the owners of claims are told apart in all of them. */
export function ownerRepository({ namespace, key }: PackageRevision): string {
  return namespace === DEFAULT_NAMESPACE ? key.repository : `${namespace}/${key.repository}`;
}

export function readClaim(object: KrmObject, revision: PackageRevision): PackageClaim {
  const wish = claimFromObject(object.value, ownerRepository(revision), revision.key.package);
  const { status: _status, ...asked } = object.value;
  const owner = 'problem' in wish ? '' : ownerText(wish.owner);
  return { object, type: formatConditionType(object), key: `${owner} ${canonicalJson(asked)}`, wish };
}

/**
 * Without a value the status stays as it is, so that a pool that is gone for a moment costs nobody the address; unless what it
 * says is `foreign`: held by another owner, who was first.
 */
export function answerFor({ object, type }: PackageClaim, outcome: ClaimOutcome, foreign: boolean): Answer {
  const { prefix: oldPrefix, gateway: oldGateway, ...rest } = statusOf(object);
  if (outcome.refused !== undefined) {
    const { reason, message } = outcome.refused;
    const answer = { type, status: 'False', reason, message } as const;
    if (!foreign || (oldPrefix === undefined && oldGateway === undefined)) return answer;
    return { ...answer, written: { value: Object.keys(rest).length === 0 ? undefined : rest } };
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
 * One answer for each type. A condition type does not carry the namespace, so two claims can share one; it is True only if all
 * of them have a value.
 */
export function mergeAnswers(answers: readonly Answer[]): Answer[] {
  const merged = new Map<string, Answer>();
  for (const answer of answers) {
    const other = merged.get(answer.type);
    if (other === undefined || (other.status === 'True' && answer.status === 'False')) merged.set(answer.type, answer);
    else if (other.status === answer.status && other.message !== answer.message)
      merged.set(answer.type, { ...other, message: `${other.message}; ${answer.message}` });
  }
  return [...merged.values()];
}
