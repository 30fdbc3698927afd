import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';

export type TargetHistory = NonNullable<NonNullable<DeliveryTarget['status']>['history']>;

/** The first delivery of a revision to a target, with what became of it. */
export type Change = TargetHistory['changes'][number];

export type Failure = NonNullable<Change['failure']>;

/** Changes that a target keeps: some 100 KB of its object. */
export const MAX_CHANGES = 500;

/**
 * Milliseconds after a delivery within which a package has to become unhealthy for the change to count as failed: a later failure has
 * another cause. The rollback policy has the same limit.
 */
export const FAILURE_WINDOW_MS = 3_600_000;

/** The history of a target before its first delivery is recorded. Times in milliseconds since the epoch. */
export function emptyHistory(createdAt: number, now: number): TargetHistory {
  return {
    commit: '',
    // What was delivered within the last hour can still be judged by what the engine reports now; older deliveries cannot.
    observedFrom: timeOf(Math.max(createdAt, now - FAILURE_WINDOW_MS)),
    completeFrom: timeOf(createdAt),
    changes: [],
  };
}

/** RFC 3339 with milliseconds. */
export function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** True if the health of the change was observed from its delivery on. */
export function isObserved({ observedFrom }: Pick<TargetHistory, 'observedFrom'>, { deliveredAt }: Change): boolean {
  return Date.parse(deliveredAt) >= Date.parse(observedFrom);
}

/** The change as failed; one that failed already keeps its time. */
export function asFailed(change: Change, failure: Failure, at: number): Change {
  if (change.failedAt !== undefined) return change;
  return { ...change, failure, failedAt: timeOf(Math.max(at, Date.parse(change.deliveredAt))) };
}
