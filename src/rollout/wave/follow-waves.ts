import type { AnalysisKey, Observations } from './observation.ts';
import type { PauseCause, PlanState, WaveRecord } from './plan-state.ts';
import type { StateEditor } from './transition.ts';
import { membersOf, nextMembers } from './wave-members.ts';
import { limitOf, type PlanSpec, type WaveSpec } from './wave-spec.ts';

const WITH_RESULT: ReadonlySet<string> = new Set(['Verified', 'Failed', 'Unreachable']);

/** The wave that is in progress. */
export function currentWave({ waves }: Pick<PlanState, 'waves'>): WaveRecord | undefined {
  return waves.find(({ completedMs }) => completedMs === undefined);
}

/** The next wave of the spec, once all that have started are completed. */
export function nextWave(state: PlanState, { waves }: PlanSpec): WaveSpec | undefined {
  if (currentWave(state) !== undefined) return undefined;
  return waves.find(({ name }) => state.waves.every((started) => started.name !== name));
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
  const { name } = current;
  if (isPassed(name, spec)) {
    editor.apply({ type: 'WavePromoted', wave: name });
    return;
  }
  fillLastWave(editor, spec, observations, name);
  const members = membersOf(editor.state, name);
  // Nothing to wait for: an earlier wave has its targets already, or they were removed.
  if (members.length === 0) {
    editor.apply({ type: 'WaveCompleted', wave: name });
    return;
  }
  const isVerified = members.every(({ phase }) => WITH_RESULT.has(phase));
  if (!isVerified) {
    if (current.verifiedMs !== undefined) editor.apply({ type: 'WaveUnverified', wave: name });
    return;
  }
  if (current.verifiedMs === undefined) {
    editor.apply({ type: 'WaveVerified', wave: name });
    return;
  }
  const { soakMs = 0 } = spec.waves.find((wave) => wave.name === name) ?? {};
  const runs = analysesOf(current, spec).map(observations.analysisOf);
  const isAnalysed = runs.every((run) => run?.phase === 'Successful');
  if (isAnalysed && current.analysedMs === undefined) editor.apply({ type: 'WaveAnalysed', wave: name });
  if (isAnalysed && editor.state.elapsedMs - current.verifiedMs >= soakMs)
    editor.apply({ type: 'WaveCompleted', wave: name });
}

/** Targets that join while the last wave is in progress are part of it. */
function fillLastWave(editor: StateEditor, spec: PlanSpec, observations: Observations, name: string): void {
  const last = spec.waves.at(-1);
  if (last?.name !== name) return;
  for (const { id } of nextMembers(editor.state, last, observations)) assign(editor, id, name);
}

/** Starts the next wave, if it may start. */
export function startNextWave(editor: StateEditor, spec: PlanSpec, observations: Observations): boolean {
  const { state } = editor;
  const next = nextWave(state, spec);
  if (next === undefined || state.targets.size === 0) return false;
  // A number that arrives later must not count for a decision before.
  if (observations.candidates === undefined) return false;
  if (observations.approvalsOf(next.name) < next.approvals) return false;
  if (state.phase === 'Pending') editor.apply({ type: 'Started' });
  editor.apply({ type: 'WaveStarted', wave: next.name });
  for (const { id } of nextMembers(editor.state, next, observations)) assign(editor, id, next.name);
  return true;
}

/** What was published ahead of the wave is verified with it. */
function assign(editor: StateEditor, id: string, wave: string): void {
  const { published } = editor.state.targets.get(id) ?? {};
  editor.apply({ type: 'Assigned', id, wave });
  if (published !== undefined) editor.apply({ type: 'Approved', id, published });
}

function isPassed(wave: string, { waves, promotePast }: PlanSpec): boolean {
  const at = waves.findIndex(({ name }) => name === wave);
  return at >= 0 && at <= waves.findIndex(({ name }) => name === promotePast);
}
