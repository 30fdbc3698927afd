import { pathProblem } from '../path-rules.ts';
import { packageKey } from '../selection/select-revisions.ts';
import type { PackageName } from '../status/target-deployment.ts';
import { asFailed, type Change, MAX_CHANGES, type TargetHistory, timeOf } from './change.ts';

/** Longer names cannot come from a Repository. */
const MAX_REPOSITORY_CHARACTERS = 253;
const MAX_PACKAGE_CHARACTERS = 512;

/** A delivery or removal that the branch of a target shows. */
export interface DeliveryEvent extends PackageName {
  /** Undefined for a removal. */
  readonly revision: number | undefined;
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** The revision that the folder of the package had before, where the history may no longer have it. */
  readonly before?: number | undefined;
}

export interface RecordedDeliveries {
  readonly history: TargetHistory;
  /** New changes, those included that the history does not keep. */
  readonly added: readonly Change[];
}

/**
 * The history with further deliveries, the oldest first. A revision that is higher than every earlier one of the package is a change. The
 * same one again, after a repair or the end of a rollback, is none, and a lower one is none either: it makes the last change a failed one.
 * Times never go back, and are never later than `now`.
 */
export function recordDeliveries(
  history: TargetHistory,
  events: readonly DeliveryEvent[],
  now: number,
): RecordedDeliveries {
  const changes = [...history.changes];
  /** The place of the last change of each package. */
  const last = new Map(changes.map((change, index) => [packageKey(change), index]));
  const added: Change[] = [];
  let floor = Math.max(0, ...changes.slice(-1).map(({ deliveredAt }) => Date.parse(deliveredAt)));
  for (const event of events) {
    if (!isPlausible(event)) continue;
    const { repository, package: path, revision } = event;
    const time = Math.max(Math.min(event.time, now), floor);
    const key = packageKey(event);
    const index = last.get(key);
    const present = index === undefined ? undefined : changes[index];
    const highest = present?.revision ?? event.before ?? 0;
    if (revision === undefined) {
      if (index !== undefined && present !== undefined) changes[index] = { ...present, removedAt: timeOf(time) };
    } else if (revision > highest) {
      if (index !== undefined && present !== undefined) changes[index] = { ...present, replacedAt: timeOf(time) };
      last.set(key, changes.length);
      floor = time;
      const change = { repository, package: path, revision, deliveredAt: timeOf(time) };
      changes.push(change);
      added.push(change);
    } else if (index !== undefined && present !== undefined && revision < highest && present.removedAt === undefined)
      changes[index] = asFailed(present, 'Downgraded', time);
  }
  return { history: withinLimit({ ...history, changes }), added };
}

/** Drops the oldest changes above the limit. */
function withinLimit(history: TargetHistory): TargetHistory {
  const { changes, completeFrom } = history;
  const dropped = changes.slice(0, -MAX_CHANGES).at(-1);
  if (changes.length <= MAX_CHANGES || dropped === undefined) return history;
  const from = Math.max(Date.parse(completeFrom), Date.parse(dropped.deliveredAt) + 1);
  return { ...history, completeFrom: timeOf(from), changes: changes.slice(-MAX_CHANGES) };
}

/** True for a delivery that Sluice can have made: the text of a branch is not trusted. */
export function isPlausible({ repository, package: path, time }: DeliveryEvent): boolean {
  if (repository.length > MAX_REPOSITORY_CHARACTERS || path.length > MAX_PACKAGE_CHARACTERS) return false;
  return Number.isFinite(time) && pathProblem(repository) === undefined && pathProblem(path) === undefined;
}
