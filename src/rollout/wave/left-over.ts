import { currentWave } from './follow-waves.ts';
import { isOver, type PlanState, type TargetRecord } from './plan-state.ts';
import { StateEditor } from './transition.ts';
import { type MemberObservations, memberChanges } from './wave-members.ts';
import type { PlanSpec } from './wave-spec.ts';

/** The targets that no wave of the plan will contain, as far as the waves, and what is proposed now, stay as they are. */
export function leftOver(spec: PlanSpec, state: PlanState, observations: MemberObservations): readonly TargetRecord[] {
  const last = spec.waves.at(-1);
  if (last === undefined || isOver(state.phase)) return [];
  const started = new Set(state.waves.map(({ name }) => name));
  // The last wave takes all that is left, also of those that are selected now.
  if ('percent' in last.size && last.size.percent >= 100 && !started.has(last.name)) return [];
  const editor = new StateEditor(state);
  const current = currentWave(state)?.name;
  for (const wave of spec.waves) {
    if (started.has(wave.name) && wave.name !== current) continue;
    const { taken } = memberChanges(editor.state, wave, observations);
    for (const { id } of taken) editor.apply({ type: 'Assigned', id, wave: wave.name });
  }
  return [...editor.state.targets.values()].filter(({ phase, wave }) => phase === 'Pending' && wave === undefined);
}
