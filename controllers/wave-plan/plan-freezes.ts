import type { Clock } from '../../src/foundation/time/clock.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { type FreezeRule, freezeText } from '../../src/package/model/policy/approval-rules.ts';
import { MAX_FREEZES, type WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { type Condition, findCondition, setCondition } from '../../src/resource/object/condition.ts';

type Status = NonNullable<WavePlan['status']>;

/** Condition of a plan, set once a Freeze stopped it. */
const FROZEN_CONDITION = 'Frozen';
/** The largest time of a date. */
const MAX_TIME_MS = 8.64e15;

/** The freezes in force as a plan reports them; undefined if there is none. */
export function freezeStatusOf(freezes: readonly FreezeRule[]): Status['freezes'] {
  if (freezes.length === 0) return undefined;
  return freezes.slice(0, MAX_FREEZES).map(({ namespace, name, reason, until }) => ({
    ...{ namespace, name, reason },
    ...(until === undefined || Math.abs(until) > MAX_TIME_MS ? {} : { until: timestamp(until) }),
  }));
}

/** Which freezes stop a plan, why, and until when. */
export function frozenText(freezes: readonly FreezeRule[]): string {
  return `nothing is approved, and the time of the plan stops: ${freezes.map(freezeText).join('; ')}`;
}

export function withFrozenCondition(
  conditions: readonly Condition[],
  freezes: readonly FreezeRule[],
  observedGeneration: number | undefined,
  clock: Clock,
): readonly Condition[] {
  const isFrozen = freezes.length > 0;
  if (!isFrozen && findCondition(conditions, FROZEN_CONDITION) === undefined) return conditions;
  const next = isFrozen
    ? { status: 'True' as const, reason: 'Freeze', message: frozenText(freezes) }
    : { status: 'False' as const, reason: 'NoFreeze', message: 'no Freeze is in force' };
  const observed = observedGeneration === undefined ? {} : { observedGeneration };
  return setCondition(conditions, { type: FROZEN_CONDITION, ...next, ...observed }, clock.now());
}

/** Milliseconds until the first freeze ends; undefined if none ends by itself. */
export function untilFirstEndMs(freezes: readonly FreezeRule[], now: number): number | undefined {
  const ends = freezes.flatMap(({ until }) => until ?? []).map((until) => Math.max(1, until - now));
  return ends.length === 0 ? undefined : Math.min(...ends);
}
