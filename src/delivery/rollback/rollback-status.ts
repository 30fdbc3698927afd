import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition, setCondition } from '../../resource/object/condition.ts';
import type { Rollback } from '../delivery-target.ts';
import { packageKey } from '../selection/select-revisions.ts';

type TargetStatus = NonNullable<DeliveryTarget['status']>;
type FailedRevision = NonNullable<TargetStatus['failedRevisions']>[number];

/** Condition of a target, set once it went back to an earlier revision of a package. */
const ROLLED_BACK_CONDITION = 'RolledBack';
/** Packages that the condition names. */
const MAX_NAMED = 10;
/** Failed revisions that a status keeps: those of the latest rollbacks. */
const MAX_FAILED = 100;

/** The status with further rollbacks; a package that has one keeps it. `now` in milliseconds since the epoch. */
export function withRollbacks(status: TargetStatus, added: readonly Rollback[], now: number): TargetStatus {
  const present = status.rollbacks ?? [];
  const known = new Set(present.map(packageKey));
  const rollbacks = [...present, ...added.filter((one) => !known.has(packageKey(one)))].sort((a, b) =>
    packageKey(a) < packageKey(b) ? -1 : 1,
  );
  const failed = added.map(({ repository, package: path, from, time }) => ({
    ...{ repository, package: path, revision: from, time },
  }));
  const isAgain = (one: FailedRevision) => failed.some((other) => isSameRevision(one, other));
  const failedRevisions = [...(status.failedRevisions ?? []).filter((one) => !isAgain(one)), ...failed];
  return withCondition({ ...status, rollbacks, failedRevisions: failedRevisions.slice(-MAX_FAILED) }, '', now);
}

/** The status after a user has ended rollbacks: their revisions do not count as failed any more. */
export function withResumedRevisions(status: TargetStatus, ended: readonly Rollback[], now: number): TargetStatus {
  const { failedRevisions = [], ...rest } = withoutRollbacks(status, ended, 'resumed by hand', now);
  const isEnded = (one: FailedRevision) =>
    ended.some((other) => isSameRevision(one, { ...other, revision: other.from }));
  const left = failedRevisions.filter((one) => !isEnded(one));
  return left.length === 0 ? rest : { ...rest, failedRevisions: left };
}

function isSameRevision(one: FailedRevision, other: Omit<FailedRevision, 'time'>): boolean {
  return packageKey(one) === packageKey(other) && one.revision === other.revision;
}

/** The status without these rollbacks; `why` is for the condition once none is left. */
export function withoutRollbacks(
  status: TargetStatus,
  ended: readonly Rollback[],
  why: string,
  now: number,
): TargetStatus {
  const identityOf = (one: Rollback) => JSON.stringify([packageKey(one), one.from, one.time]);
  // One Kustomization can have made thousands.
  const isEnded = new Set(ended.map(identityOf));
  const left = status.rollbacks?.filter((one) => !isEnded.has(identityOf(one))) ?? [];
  if (left.length === (status.rollbacks?.length ?? 0)) return status;
  const { rollbacks: _, ...rest } = status;
  return withCondition(left.length === 0 ? rest : { ...rest, rollbacks: left }, why, now);
}

function withCondition(status: TargetStatus, why: string, now: number): TargetStatus {
  const { rollbacks = [], conditions } = status;
  if (rollbacks.length === 0 && findCondition(conditions, ROLLED_BACK_CONDITION) === undefined) return status;
  const named = rollbacks.slice(0, MAX_NAMED).map(rollbackText);
  const more = rollbacks.length > named.length ? `; and ${rollbacks.length - named.length} more` : '';
  const next =
    rollbacks.length > 0
      ? { status: 'True' as const, reason: 'Unhealthy', message: `${named.join('; ')}${more}` }
      : { status: 'False' as const, reason: 'Ended', message: why };
  const observed = status.observedGeneration === undefined ? {} : { observedGeneration: status.observedGeneration };
  return {
    ...status,
    conditions: [...setCondition(conditions, { type: ROLLED_BACK_CONDITION, ...next, ...observed }, now)],
  };
}

/** What a rollback is, for users. */
export function rollbackText(rollback: Rollback): string {
  return `${packageKey(rollback)} v${rollback.from} failed, so v${rollback.to} is delivered: ${rollback.reason}`;
}
