import { packageKey } from '../../delivery/selection/select-revisions.ts';
import { currentDeployment, deploymentOf } from '../../delivery/status/target-deployment.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../resource/object/condition.ts';

/** A published revision that a target has to deliver. */
export interface WantedRevision {
  /** Of the PackageRevision. */
  readonly name: string;
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
}

export interface TargetGoal {
  readonly until: 'synced' | 'healthy' | undefined;
  readonly wanted: WantedRevision | undefined;
}

/**
 * True if the target is as wanted. Without a revision its last delivery counts, which must include everything that it selects. `delivered`
 * is the revision of the wanted package that the status is about.
 */
export function isReached(
  target: DeliveryTarget,
  { until, wanted }: TargetGoal,
  delivered: number | undefined,
): boolean {
  if (until === undefined && wanted === undefined) return false;
  if (wanted === undefined ? !isReady(target) : delivered !== wanted.revision) return false;
  if (until === undefined) return true;
  const deployment = currentDeployment(target);
  if (deployment === undefined) return false;
  const { synced, healthy } = wanted === undefined ? deployment : deploymentOf(deployment, wanted);
  return synced.status === 'True' && (until === 'synced' || healthy.status === 'True');
}

/** Why the target does not deliver the revision, by its spec and its last report; undefined if it may still do so. */
export function obstacleOf(
  target: DeliveryTarget,
  wanted: WantedRevision,
  delivered: number | undefined,
): string | undefined {
  const { spec, status, metadata } = target;
  const isWanted = (one: { readonly repository: string; readonly package: string }) =>
    packageKey(one) === packageKey(wanted);
  if (delivered === wanted.revision) return undefined;
  if (spec.suspend === true) return 'the target is suspended (spec.suspend)';
  const pin = spec.pins?.find(isWanted);
  if (pin !== undefined && pin.revision !== wanted.revision) return `v${pin.revision} is pinned there (spec.pins)`;
  const rollback = status?.rollbacks?.find(isWanted);
  if (rollback?.from === wanted.revision)
    return `v${rollback.from} failed there, so v${rollback.to} is delivered: ${rollback.reason}`;
  if (delivered !== undefined && delivered > wanted.revision && pin === undefined)
    return `v${delivered} is delivered there already`;
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready?.status !== 'False' || ready.observedGeneration !== metadata.generation) return undefined;
  if (ready.reason !== 'Partial') return `${ready.reason}: ${ready.message}`;
  const start = `${packageKey(wanted)}: `;
  const own = ready.message?.split('; ').find((part) => part.startsWith(start));
  return own?.slice(start.length);
}

/** True if the target has delivered everything that its present spec selects. */
function isReady({ metadata, status }: DeliveryTarget): boolean {
  const ready = findCondition(status?.conditions, 'Ready');
  return ready?.status === 'True' && ready.observedGeneration === metadata.generation;
}
