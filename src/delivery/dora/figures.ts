import type { Change } from './change.ts';

const DAY_MS = 86_400_000;

/** Milliseconds since the epoch; the period contains `from` and not `to`. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

/** Percentiles of a list of times. */
export interface Percentiles {
  /** Number of values. */
  readonly count: number;
  readonly p50Seconds: number;
  readonly p90Seconds: number;
}

/** The four key figures. What there is no data for is absent. */
export interface Figures {
  /** Number of changes. */
  readonly deployments: number;
  readonly deploymentsPerDay?: number;
  readonly leadTime?: Percentiles;
  /** Changes that failed, were healthy, or were replaced by a later one without a failure. Others are still open. */
  readonly judgedChanges: number;
  readonly failedChanges: number;
  /** Between 0 and 1. */
  readonly changeFailureRate?: number;
  readonly timeToRestore?: Percentiles;
}

/** The figures of the changes that were delivered in a period. */
export function figuresOf(changes: readonly Change[], { from, to }: Period): Figures {
  const wanted = changes.filter(({ deliveredAt }) => {
    const time = Date.parse(deliveredAt);
    return time >= from && time < to;
  });
  const failed = wanted.filter(({ failedAt }) => failedAt !== undefined);
  const judged = wanted.filter(
    ({ failedAt, healthyAt, replacedAt }) => (failedAt ?? healthyAt ?? replacedAt) !== undefined,
  );
  const leadTime = percentiles(wanted.flatMap((one) => leadTimeMs(one) ?? []));
  const timeToRestore = percentiles(failed.flatMap((one) => timeToRestoreMs(one) ?? []));
  // A shorter period would make many deployments a day of a few.
  const days = Math.max(to - from, DAY_MS) / DAY_MS;
  return {
    deployments: wanted.length,
    ...(wanted.length === 0 ? {} : { deploymentsPerDay: wanted.length / days }),
    ...(leadTime === undefined ? {} : { leadTime }),
    judgedChanges: judged.length,
    failedChanges: failed.length,
    ...(judged.length === 0 ? {} : { changeFailureRate: failed.length / judged.length }),
    ...(timeToRestore === undefined ? {} : { timeToRestore }),
  };
}

/** From the creation of the draft until the change is healthy; undefined unless both are known. */
export function leadTimeMs({ createdAt, deliveredAt, healthyAt }: Change): number | undefined {
  if (createdAt === undefined || healthyAt === undefined) return undefined;
  const created = Date.parse(createdAt);
  // A draft that seems to be created after its delivery is from a clock that was wrong. Commits have whole seconds.
  if (created >= Date.parse(deliveredAt) + 1000) return undefined;
  return Math.max(0, Date.parse(healthyAt) - created);
}

/** From the failure until the package is healthy again; undefined for a change that has not failed or is not restored. */
export function timeToRestoreMs({ failedAt, restoredAt }: Change): number | undefined {
  return failedAt === undefined || restoredAt === undefined ? undefined : Date.parse(restoredAt) - Date.parse(failedAt);
}

function percentiles(milliseconds: readonly number[]): Percentiles | undefined {
  if (milliseconds.length === 0) return undefined;
  const sorted = milliseconds.toSorted((a, b) => a - b);
  return {
    count: sorted.length,
    p50Seconds: nearestRank(sorted, 0.5) / 1000,
    p90Seconds: nearestRank(sorted, 0.9) / 1000,
  };
}

/** The smallest value that at least this fraction of all values does not exceed. */
function nearestRank(sorted: readonly number[], fraction: number): number {
  return sorted[Math.ceil(fraction * sorted.length) - 1] ?? Number.NaN;
}
