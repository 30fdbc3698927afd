import { timestamp } from '../../src/foundation/clock.ts';
import { setCondition } from '../../src/resource/condition.ts';
import type { Repository } from '../../src/resource/kinds/repository.ts';
import { sameValue } from '../../src/resource/same-value.ts';

export interface RepositoryReport {
  readonly reason: 'Ready' | 'Error' | 'Reconciling';
  readonly message: string;
  /** Of the last complete look, if there was one. */
  readonly facts?: {
    readonly packageCount: number;
    readonly gitCommitHash: string | undefined;
    /** Milliseconds since the epoch. */
    readonly syncedAt: number;
    readonly nextSyncAt: number;
    readonly ranOnceAt: string | undefined;
  };
}

/** Times alone are written at most this often, in milliseconds. */
const TIMES_EVERY = 60_000;

/** The status after a report; undefined if it is not worth a write. */
export function statusAfter(
  { metadata, status: before }: Repository,
  { reason, message, facts }: RepositoryReport,
  now: number,
): NonNullable<Repository['status']> | undefined {
  const { generation } = metadata;
  const ready = {
    type: 'Ready',
    status: reason === 'Ready' ? ('True' as const) : ('False' as const),
    reason,
    message,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  const status = {
    ...before,
    conditions: [...setCondition(before?.conditions, ready, now)],
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(facts === undefined
      ? {}
      : {
          packageCount: facts.packageCount,
          gitCommitHash: facts.gitCommitHash,
          observedRunOnceAt: facts.ranOnceAt,
          lastFullSyncTime: timestamp(facts.syncedAt),
          nextFullSyncTime: timestamp(facts.nextSyncAt),
        }),
  };
  const isNews = !sameValue(withoutTimes(status), withoutTimes(before ?? {}));
  const age = status.lastFullSyncTime == null ? 0 : Date.parse(status.lastFullSyncTime) - timeOf(before);
  return isNews || age >= TIMES_EVERY ? status : undefined;
}

function timeOf(status: Repository['status']): number {
  return status?.lastFullSyncTime == null ? Number.NEGATIVE_INFINITY : Date.parse(status.lastFullSyncTime);
}

function withoutTimes({
  lastFullSyncTime: _last,
  nextFullSyncTime: _next,
  ...rest
}: NonNullable<Repository['status']>) {
  return rest;
}
