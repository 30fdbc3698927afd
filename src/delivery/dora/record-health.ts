import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageKey } from '../selection/select-revisions.ts';
import { currentDeployment, deploymentOf, type PackageName, type TimedState } from '../status/target-deployment.ts';
import { asFailed, type Change, FAILURE_WINDOW_MS, isObserved, type TargetHistory, timeOf } from './change.ts';

type TargetStatus = NonNullable<DeliveryTarget['status']>;

/** A package of the last delivery with its revision, which may be lower than that of its last change. */
export interface PresentPackage extends PackageName {
  readonly revision: number;
}

const FAILED_SYNC: ReadonlySet<string> = new Set(['Failed']);
/** Other states, such as Unknown or Blocked, do not support the statement that the content fails. */
const FAILING_HEALTH: ReadonlySet<string> = new Set(['Degraded', 'Missing']);

/**
 * The history with what the engine reports of the last delivery, and with the rollbacks of the target. Returns the same object if nothing
 * changes.
 *
 * A state that holds since before the delivery of the content was first seen of this content now: read-back compares trees, so that it
 * is never the state of the content before.
 */
export function recordHealth(
  history: TargetHistory,
  status: TargetStatus,
  packages: readonly PresentPackage[],
  now: number,
): TargetHistory {
  const rolledBack = new Map((status.rollbacks ?? []).map((one) => [`${packageKey(one)}@${one.from}`, one]));
  const deployment = history.commit === status.lastCommit ? currentDeployment({ status }) : undefined;
  const open = history.changes.filter((change) => isOpen(history, change));
  if (open.length === 0 || (deployment === undefined && rolledBack.size === 0)) return history;
  const wanted = new Set(open.map(packageKey));
  const deliveredOf = new Map(
    packages.filter((one) => wanted.has(packageKey(one))).map((one) => [packageKey(one), one.revision]),
  );
  let isChanged = false;
  const changes = history.changes.map((change) => {
    if (!isOpen(history, change)) return change;
    const key = packageKey(change);
    const rollback = rolledBack.get(`${key}@${change.revision}`);
    let next = rollback === undefined ? change : asRolledBack(change, Date.parse(rollback.time));
    const delivered = deliveredOf.get(key);
    if (deployment !== undefined && delivered !== undefined) {
      const { synced, healthy } = deploymentOf(deployment, change);
      if (delivered === change.revision) next = withReport(next, synced, healthy, now);
      if (next.failedAt !== undefined && next.restoredAt === undefined && isGood(synced, healthy))
        next = { ...next, restoredAt: timeSince(healthy, next.failedAt, now) };
    }
    isChanged ||= next !== change;
    return next;
  });
  return isChanged ? { ...history, changes } : history;
}

/** True while a report can still change something. */
function isOpen(history: TargetHistory, change: Change): boolean {
  const { failedAt, replacedAt, removedAt, restoredAt } = change;
  if (removedAt !== undefined || !isObserved(history, change)) return false;
  return failedAt === undefined ? replacedAt === undefined : restoredAt === undefined || change.healthyAt === undefined;
}

function withReport(change: Change, synced: TimedState, healthy: TimedState, now: number): Change {
  const { deliveredAt } = change;
  let next = change;
  if (next.syncedAt === undefined && synced.status === 'True')
    next = { ...next, syncedAt: timeSince(synced, deliveredAt, now) };
  if (next.healthyAt === undefined && isGood(synced, healthy))
    next = { ...next, healthyAt: later(timeSince(healthy, deliveredAt, now), next.syncedAt ?? deliveredAt) };
  const failing = failingState(synced, healthy);
  if (failing === undefined || next.failedAt !== undefined) return next;
  const at = timeSince(failing, deliveredAt, now);
  return Date.parse(at) - Date.parse(deliveredAt) <= FAILURE_WINDOW_MS
    ? asFailed(next, 'Unhealthy', Date.parse(at))
    : next;
}

function failingState(synced: TimedState, healthy: TimedState): TimedState | undefined {
  if (synced.status === 'False' && FAILED_SYNC.has(synced.reason)) return synced;
  return healthy.status === 'False' && FAILING_HEALTH.has(healthy.reason) ? healthy : undefined;
}

function isGood(synced: TimedState, healthy: TimedState): boolean {
  return synced.status === 'True' && healthy.status === 'True';
}

/** Since when a state holds of what was there at `floor`; now if it held already before. Never before `floor`. */
function timeSince({ since }: TimedState, floor: string, now: number): string {
  const [at, least] = [Date.parse(since), Date.parse(floor)];
  return timeOf(at >= least ? at : Math.max(now, least));
}

function later(one: string, other: string): string {
  return Date.parse(other) > Date.parse(one) ? other : one;
}

/** An automatic rollback confirms a failure, and does not move its time. */
function asRolledBack(change: Change, at: number): Change {
  if (change.failure === 'RolledBack') return change;
  return { ...asFailed(change, 'RolledBack', at), failure: 'RolledBack' };
}
