import type { AnalysisKey, Observations } from './observation.ts';
import type { PauseCause, PlanState, WaveRecord } from './plan-state.ts';
import type { StateEditor } from './transition.ts';
import { mayLeave, memberChanges, membersOf } from './wave-members.ts';
import { limitOf, type PlanSpec, type WaveSpec } from './wave-spec.ts';

const WITH_RESULT: ReadonlySet<string> = new Set(['Verified', 'Failed', 'Unreachable']);

/** The wave that is in progress. */
export function currentWave({ waves }: Pick<PlanState, 'waves'>): WaveRecord | undefined {
  return waves.find(({ completedMs }) => completedMs === undefined);
}

/** False while no target is in the plan, or all were removed. */
export function hasTargets({ targets }: PlanState): boolean {
  return [...targets.values()].some(({ phase }) => phase !== 'Skipped');
}

/** The next wave of the spec, once all that have started are completed. */
export function nextWave(state: Pick<PlanState, 'waves'>, { waves }: PlanSpec): WaveSpec | undefined {
  if (currentWave(state) !== undefined) return undefined;
  return waves.find(({ name }) => state.waves.every((started) => started.name !== name));
}

/** True for a wave that a user has requested to pass. Once the wave that the spec names is over, it passes nothing that starts later. */
export function isPassed(
  { waves: started }: Pick<PlanState, 'waves'>,
  wave: string,
  { waves, promotePast }: PlanSpec,
): boolean {
  if (promotePast === undefined || promotePast === wave) return promotePast === wave;
  if (started.some(({ name, completedMs }) => name === promotePast && completedMs !== undefined)) return false;
  const placeOf = (wanted: string) => waves.findIndex(({ name }) => name === wanted);
  // A wave that the spec has no longer is in progress before those that it has.
  return placeOf(promotePast) >= 0 && placeOf(wave) <= placeOf(promotePast);
}

/** The wave in progress if the spec has it no longer, and no user has decided about that: its soak and its analyses are not known. */
export function missingWave(state: Pick<PlanState, 'waves'>, spec: PlanSpec): WaveRecord | undefined {
  const current = currentWave(state);
  if (current === undefined || current.isRemoved === true || isPassed(state, current.name, spec)) return undefined;
  return spec.waves.some(({ name }) => name === current.name) ? undefined : current;
}

/** The analyses of a wave at its present attempt. */
export function analysesOf({ name: wave, analysis: attempt }: WaveRecord, spec: PlanSpec): AnalysisKey[] {
  const { analyses = 0 } = spec.waves.find(({ name }) => name === wave) ?? {};
  return Array.from({ length: analyses }, (_, index) => ({ wave, attempt, index }));
}

export interface Budget {
  readonly failed: number;
  readonly maxFailures: number;
  readonly unreachable: number;
  readonly maxUnreachable: number;
}

/** The failures that count, and how many are permitted. */
export function budgetOf({ targets }: PlanState, spec: PlanSpec): Budget {
  const all = [...targets.values()].filter(({ phase }) => phase !== 'Skipped');
  const count = (wanted: string) =>
    all.filter(({ phase, isAccepted }) => phase === wanted && isAccepted !== true).length;
  return {
    failed: count('Failed'),
    maxFailures: limitOf(spec.maxFailures, all.length),
    unreachable: count('Unreachable'),
    maxUnreachable: limitOf(spec.maxUnreachable, all.length),
  };
}

/** The first reason to stop; undefined if there is none. */
export function stopCause(
  state: PlanState,
  spec: PlanSpec,
  { analysisOf }: Observations,
): { readonly cause: Exclude<PauseCause, 'Requested'>; readonly message: string } | undefined {
  const { failed, maxFailures, unreachable, maxUnreachable } = budgetOf(state, spec);
  if (failed > maxFailures)
    return { cause: 'MaxFailures', message: `${failed} targets have failed, and maxFailures permits ${maxFailures}` };
  if (unreachable > maxUnreachable) {
    const message = `${unreachable} targets cannot be reached, and maxUnreachable permits ${maxUnreachable}`;
    return { cause: 'MaxUnreachable', message };
  }
  const missing = missingWave(state, spec);
  if (missing !== undefined) {
    const message = `wave ${missing.name} is in progress, and spec.waves has no wave of this name any more; give it its name again, which ends the pause, or resume the plan: then the wave ends without a soak and without an analysis once what it has approved is verified, and later waves take its other targets`;
    return { cause: 'WaveRemoved', message };
  }
  const current = currentWave(state);
  if (current === undefined || current.verifiedMs === undefined) return undefined;
  for (const key of analysesOf(current, spec)) {
    const run = analysisOf(key);
    if (run === undefined) continue;
    const message = `analysis ${key.index + 1} of wave ${key.wave} is ${run.phase}${run.message === '' ? '' : `: ${run.message}`}`;
    if (run.phase === 'Inconclusive') return { cause: 'AnalysisInconclusive', message };
    if (run.phase === 'Failed' || run.phase === 'Error') return { cause: 'AnalysisFailed', message };
  }
  return undefined;
}

/** Advances the current wave: verified, analysed, completed, or passed by a user. */
export function followWave(editor: StateEditor, spec: PlanSpec, observations: Observations): void {
  const current = currentWave(editor.state);
  if (current === undefined) return;
  const { name, isRemoved } = current;
  const wave = spec.waves.find((one) => one.name === name);
  if (isPassed(editor.state, name, spec)) {
    // No other wave takes what is left.
    if (wave !== undefined && wave === spec.waves.at(-1)) changeMembers(editor, wave, observations, true);
    editor.apply({ type: 'WavePromoted', wave: name });
    return;
  }
  if (wave !== undefined && isRemoved === true) editor.apply({ type: 'WaveRestored', wave: name });
  // What joins later does not start the soak again, unless no other wave follows.
  const mayGrow = current.verifiedMs === undefined || wave === spec.waves.at(-1);
  if (wave !== undefined) changeMembers(editor, wave, observations, mayGrow);
  const members = membersOf(editor.state, name);
  // Its targets were removed. With nothing verified it is not over, unless users have removed the wave too.
  if (members.length === 0 && wave === undefined && isRemoved === true) {
    editor.apply({ type: 'WaveCompleted', wave: name });
    return;
  }
  const isVerified = members.length > 0 && members.every(({ phase }) => WITH_RESULT.has(phase));
  if (!isVerified) {
    if (current.verifiedMs !== undefined) editor.apply({ type: 'WaveUnverified', wave: name });
    return;
  }
  if (current.verifiedMs === undefined) {
    editor.apply({ type: 'WaveVerified', wave: name });
    return;
  }
  if (wave === undefined && isRemoved !== true) return;
  const { soakMs = 0 } = wave ?? {};
  const runs = analysesOf(current, spec).map(observations.analysisOf);
  const isAnalysed = runs.every((run) => run?.phase === 'Successful');
  if (isAnalysed && current.analysedMs === undefined) editor.apply({ type: 'WaveAnalysed', wave: name });
  if (isAnalysed && editor.state.elapsedMs - current.verifiedMs >= soakMs)
    editor.apply({ type: 'WaveCompleted', wave: name });
}

/** Waves that the spec has no longer approve nothing more: what they have not approved waits for the waves that it has. */
export function releaseRemoved(editor: StateEditor, { waves }: PlanSpec, observations: Observations): void {
  for (const { name, completedMs, isRemoved } of editor.state.waves) {
    if ((completedMs === undefined && isRemoved !== true) || waves.some((wave) => wave.name === name)) continue;
    for (const target of membersOf(editor.state, name)) {
      // The plan has not begun to approve one that is Assigned, also if its repository cannot be read.
      const isUnknown = (id: string) => target.phase !== 'Assigned' && observations.isUnknown(id);
      if (mayLeave(target, { ...observations, isUnknown })) editor.apply({ type: 'Released', id: target.id });
    }
  }
}

/** Leads a wave to its size: before each approval, since targets may have been removed or have joined. */
function changeMembers(editor: StateEditor, wave: WaveSpec, observations: Observations, mayGrow: boolean): void {
  const changes = memberChanges(editor.state, wave, observations);
  for (const { id } of changes.released) editor.apply({ type: 'Released', id });
  if (!mayGrow) return;
  // Those that were released have their places in the order before what joined later.
  const { taken } = changes.released.length === 0 ? changes : memberChanges(editor.state, wave, observations);
  for (const { id } of taken) assign(editor, id, wave.name);
}

/** Starts the next wave, if it may start. */
export function startNextWave(editor: StateEditor, spec: PlanSpec, observations: Observations): boolean {
  const { state } = editor;
  const next = nextWave(state, spec);
  if (next === undefined || !hasTargets(state)) return false;
  // A number that arrives later must not count for a decision before.
  if (observations.candidates === undefined) return false;
  if (observations.approvalsOf(next.name) < next.approvals) return false;
  if (state.phase === 'Pending') editor.apply({ type: 'Started' });
  if (state.waves.length === 0) orderTargets(editor, observations);
  editor.apply({ type: 'WaveStarted', wave: next.name });
  changeMembers(editor, next, observations, true);
  // The waves before have its part already, or its selector matches nothing.
  if (membersOf(editor.state, next.name).length === 0) editor.apply({ type: 'WaveCompleted', wave: next.name });
  return true;
}

/** The keys of the start count: a salt is known from then on only, so that users who propose cannot choose a place in the order. */
function orderTargets(editor: StateEditor, { candidates }: Observations): void {
  for (const { id, order } of editor.state.targets.values()) {
    const { key = order.key } = candidates?.get(id) ?? {};
    if (key !== order.key) editor.apply({ type: 'Ordered', id, key });
  }
}

/** What was published ahead of the wave is verified with it. */
function assign(editor: StateEditor, id: string, wave: string): void {
  const { published } = editor.state.targets.get(id) ?? {};
  editor.apply({ type: 'Assigned', id, wave });
  if (published !== undefined) editor.apply({ type: 'Approved', id, published });
}
