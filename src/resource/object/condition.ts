import { timestamp } from '../../foundation/time/clock.ts';

export type ConditionStatus = 'True' | 'False' | 'Unknown';

/**
 * A condition in the status of an object (metav1.Condition). A Kptfile's conditions are another type: they know
 * no time and no generation.
 */
export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  /** One CamelCase word for programs. */
  readonly reason: string;
  /** Human-readable explanation. */
  readonly message: string;
  /** Time of the last change of `status`, RFC 3339. */
  readonly lastTransitionTime: string;
  /** The generation of the object that the condition was set for. */
  readonly observedGeneration?: number | undefined;
}

export type NewCondition = Omit<Condition, 'lastTransitionTime'>;

/**
 * Sets or replaces a condition; the order of the others stays. `lastTransitionTime` changes only with the status.
 * Returns the same array if nothing changed, so that a caller can compare by identity whether a write is required.
 * `now` is in milliseconds since the epoch.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  next: NewCondition,
  now: number,
): readonly Condition[] {
  const before = conditions ?? [];
  const index = before.findIndex((condition) => condition.type === next.type);
  const old = before[index];
  if (old === undefined) return [...before, { ...next, lastTransitionTime: timestamp(now) }];
  const unchanged =
    old.status === next.status &&
    old.reason === next.reason &&
    old.message === next.message &&
    old.observedGeneration === next.observedGeneration;
  if (unchanged) return before;
  const lastTransitionTime = old.status === next.status ? old.lastTransitionTime : timestamp(now);
  return before.with(index, { ...next, lastTransitionTime });
}

/** The condition of a type, or undefined. */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** True only if the condition exists and is True. */
export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}
