import { packageKey } from '../selection/select-revisions.ts';
import { type Change, type Failure, isObserved, type TargetHistory } from './change.ts';
import { leadTimeMs, timeToRestoreMs } from './figures.ts';

/** What became known of a target with one write of its history, for metrics that count up. */
export interface NewResults {
  readonly deployments: number;
  readonly failures: readonly Failure[];
  readonly leadTimesMs: readonly number[];
  readonly timesToRestoreMs: readonly number[];
}

/** What `after` has and `before` has not; deliveries from before the observation are left out. */
export function newResults(
  before: TargetHistory | undefined,
  after: TargetHistory,
  added: readonly Change[],
): NewResults {
  const known = new Map((before?.changes ?? []).map((change) => [idOf(change), change]));
  const failures: Failure[] = [];
  const leadTimesMs: number[] = [];
  const timesToRestoreMs: number[] = [];
  for (const change of after.changes) {
    const last = known.get(idOf(change));
    if (last === change || !isObserved(after, change)) continue;
    if (change.failure !== undefined && last?.failedAt === undefined) failures.push(change.failure);
    const lead = leadTimeMs(change);
    if (lead !== undefined && (last === undefined || leadTimeMs(last) === undefined)) leadTimesMs.push(lead);
    const restore = timeToRestoreMs(change);
    if (restore !== undefined && (last === undefined || timeToRestoreMs(last) === undefined))
      timesToRestoreMs.push(restore);
  }
  const deployments = added.filter((change) => isObserved(after, change)).length;
  return { deployments, failures, leadTimesMs, timesToRestoreMs };
}

function idOf(change: Change): string {
  return `${packageKey(change)}@${change.revision}`;
}
