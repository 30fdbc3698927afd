import { timestamp } from '../../src/foundation/clock.ts';
import { type NewCondition, setCondition } from '../../src/resource/condition.ts';
import { type Repository, TRANSPORT_CONDITION } from '../../src/resource/kinds/repository.ts';
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
    /** When a webhook last spoke, milliseconds since the epoch; undefined if none has since the repository was opened. */
    readonly webhookAt: number | undefined;
    /** See `GitRepository.remoteNote`. */
    readonly remoteNote: string | undefined;
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
  const { remoteNote } = facts ?? {};
  const conditions = setCondition(before?.conditions, ready, now);
  const status = {
    ...before,
    conditions: [...(remoteNote === undefined ? conditions : setCondition(conditions, transport(remoteNote), now))],
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(facts === undefined
      ? {}
      : {
          packageCount: facts.packageCount,
          gitCommitHash: facts.gitCommitHash,
          observedRunOnceAt: facts.ranOnceAt,
          lastFullSyncTime: timestamp(facts.syncedAt),
          nextFullSyncTime: timestamp(facts.nextSyncAt),
          ...(facts.webhookAt === undefined ? {} : { lastWebhookTime: timestamp(facts.webhookAt) }),
        }),
  };
  const isNews = !sameValue(withoutTimes(status), withoutTimes(before ?? {}));
  const age = status.lastFullSyncTime == null ? 0 : Date.parse(status.lastFullSyncTime) - timeOf(before);
  // Negative after the clock was set back.
  return isNews || age >= TIMES_EVERY || age < 0 ? status : undefined;
}

/** How the remote is talked to. It is not about health: both ways are right, and one is faster. */
function transport(remoteNote: string): NewCondition {
  const reason = / by git\b/.test(remoteNote) ? 'Git' : 'OwnClient';
  return { type: TRANSPORT_CONDITION, status: 'True', reason, message: remoteNote };
}

function timeOf(status: Repository['status']): number {
  return status?.lastFullSyncTime == null ? Number.NEGATIVE_INFINITY : Date.parse(status.lastFullSyncTime);
}

/** What makes a write worth it. That a webhook works is news; that it spoke again is not. */
function withoutTimes({
  lastFullSyncTime: _last,
  nextFullSyncTime: _next,
  lastWebhookTime,
  ...rest
}: NonNullable<Repository['status']>) {
  return { ...rest, hasWebhook: lastWebhookTime != null };
}
