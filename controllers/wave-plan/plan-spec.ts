import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { parseDuration } from '../../src/resource/object/duration.ts';
import type { Amount, PlanSpec, WaveSize } from '../../src/rollout/wave/wave-spec.ts';

type Wave = WavePlan['spec']['waves'][number];

/** What a WavePlan requests, as the state machine reads it. */
export function planSpecOf({ spec }: Pick<WavePlan, 'spec'>): PlanSpec {
  return {
    waves: spec.waves.map((wave) => ({
      name: wave.name,
      size: sizeOf(wave),
      soakMs: parseDuration(wave.soak) ?? 0,
      approvals: wave.approval === undefined ? 0 : (wave.approval.required ?? 1),
      analyses: wave.analysis.length,
      maxConcurrency: wave.maxConcurrency === undefined ? undefined : amountOf(wave.maxConcurrency),
    })),
    maxFailures: amountOf(spec.maxFailures),
    maxUnreachable: amountOf(spec.maxUnreachable),
    progressDeadlineMs: parseDuration(spec.progressDeadline) ?? 0,
    onFailure: spec.onFailure,
    ...(spec.pausedBy === undefined ? {} : { pausedBy: spec.pausedBy }),
    ...{ paused: spec.paused, abort: spec.abort, rollback: spec.rollback },
    ...{ resume: spec.resume, promotePast: spec.promotePast },
  };
}

/** Distinct users who have approved the start of a wave, of those whom it counts. Their right to approve is checked when they do (`checkWavePlan`). */
export function wavePlanApprovals({ spec }: Pick<WavePlan, 'spec'>, wave: string): string[] {
  const { from } = spec.waves.find(({ name }) => name === wave)?.approval ?? {};
  const counts = ({ user, groups = [] }: WavePlan['spec']['approvals'][number]) =>
    from === undefined || from.includes(user) || groups.some((group) => from.includes(`group:${group}`));
  const given = spec.approvals.filter((one) => one.wave === wave && counts(one));
  return [...new Set(given.map(({ user }) => user))].sort();
}

function sizeOf({ percent, count }: Wave): WaveSize {
  if (percent !== undefined) return { percent };
  return count === undefined ? { selected: true } : { count };
}

function amountOf(amount: number | string): Amount {
  return typeof amount === 'number' ? { count: amount } : { percent: Number(amount.slice(0, -1)) };
}
