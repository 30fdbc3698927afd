import type { Observations } from './observation.ts';
import { compareTargets, type PlanState, type TargetRecord } from './plan-state.ts';
import { percentOf, type WaveSpec } from './wave-spec.ts';

/** The targets of a wave that are still in the plan. */
export function membersOf({ targets }: PlanState, wave: string): TargetRecord[] {
  return [...targets.values()].filter((target) => target.wave === wave && target.phase !== 'Skipped');
}

/** The targets that a wave takes besides those that it has, in order. */
export function nextMembers(state: PlanState, { name, size }: WaveSpec, { candidates }: Observations): TargetRecord[] {
  const all = [...state.targets.values()].filter(({ phase }) => phase !== 'Skipped');
  const free = all.filter(({ wave }) => wave === undefined).sort(compareTargets);
  if ('selected' in size) return free.filter(({ id }) => candidates?.get(id)?.selectedBy.includes(name) === true);
  const wanted =
    'percent' in size
      ? percentOf(size.percent, all.length) - (all.length - free.length)
      : size.count - membersOf(state, name).length;
  return free.slice(0, Math.max(0, wanted));
}
