import { followApprovals, followCandidates, followResults } from './follow-targets.ts';
import {
  analysesOf,
  budgetOf,
  currentWave,
  followWave,
  missingWave,
  nextWave,
  releaseRemoved,
  startNextWave,
  stopCause,
} from './follow-waves.ts';
import type { Action, Observations } from './observation.ts';
import { compareTargets, isFinal, type PauseCause, type PlanState } from './plan-state.ts';
import { replay, StateEditor, type Transition } from './transition.ts';
import { memberChanges, membersOf } from './wave-members.ts';
import { limitOf, type PlanSpec } from './wave-spec.ts';

export interface Step {
  readonly state: PlanState;
  /** What leads from the state before to this one. */
  readonly transitions: readonly Transition[];
  /** To be taken once the state is recorded. Each may be taken again: its effect is observed, not assumed. */
  readonly actions: readonly Action[];
  /** Milliseconds after which the next step is due although nothing is observed; undefined if time alone changes nothing. */
  readonly nextMs: number | undefined;
}

/**
 * One step of a wave plan: total and deterministic. `elapsedMs` are the milliseconds since the step before, by a clock that never jumps; 0
 * after a restart. They do not count while a Freeze is in force.
 */
export function step(spec: PlanSpec, state: PlanState, observations: Observations, elapsedMs: number): Step {
  const editor = new StateEditor(state);
  if (elapsedMs > 0 && !observations.isFrozen && !isFinal(state.phase))
    editor.apply({ type: 'Elapsed', ms: Math.floor(elapsedMs) });
  followApprovals(editor, observations);
  if (isFinal(state.phase)) return end(editor, []);
  if (spec.abort) {
    editor.apply({ type: 'Aborted' });
    return end(editor, []);
  }
  if (state.phase === 'RollingBack') return rollBack(editor, observations);
  if (spec.rollback) return startRollback(editor, 'a user requested it');
  if (state.phase === 'Completed') {
    const reopening = reopeningOf(state, spec, observations);
    if (reopening === undefined) return end(editor, []);
    // Recorded by itself, before any target is: an assignment to a wave that the record calls over would not count after a crash in between.
    editor.apply(reopening);
    return end(editor, [], 0);
  }
  followCandidates(editor, observations);
  followResults(editor, spec, observations);
  const failure = pauseOrResume(editor, spec, observations);
  return failure === undefined ? advance(editor, spec, observations) : startRollback(editor, failure);
}

/**
 * How a completed plan goes on of which a change of its spec selects targets again that it never came to approve, and has a wave for them: without
 * them, as after a typing error in its selector, the wave in progress ended with what it had approved, and the others found no target, and were
 * over at once.
 */
function reopeningOf(state: PlanState, spec: PlanSpec, observations: Observations): Transition | undefined {
  const { candidates, isEdited } = observations;
  if (isEdited !== true || candidates === undefined) return undefined;
  const back = new Set(
    [...state.targets.values()].flatMap(({ id, phase, attempt }) =>
      phase === 'Skipped' && attempt === 0 && candidates.has(id) ? id : [],
    ),
  );
  if (back.size === 0) return undefined;
  const editor = new StateEditor(replay(state, [{ type: 'Reopened' }]));
  const next = nextWave(editor.state, spec);
  followCandidates(editor, observations);
  const last = spec.waves.find(({ name }) => name === editor.state.waves.at(-1)?.name);
  if (last !== undefined && memberChanges(editor.state, last, observations).taken.some(({ id }) => back.has(id)))
    return { type: 'Reopened', wave: last.name };
  return next === undefined ? undefined : { type: 'Reopened' };
}

/** Causes of a pause for which nothing is rolled back. */
const NO_FAILURES: ReadonlySet<PauseCause> = new Set(['AnalysisInconclusive', 'WaveRemoved']);

/** Returns why the plan is to be rolled back; undefined if it is not. */
function pauseOrResume(editor: StateEditor, spec: PlanSpec, observations: Observations): string | undefined {
  const { phase, pause, pauses } = editor.state;
  if (phase === 'Paused' && pause?.cause === 'WaveRemoved' && missingWave(editor.state, spec) === undefined)
    editor.apply({ type: 'Unpaused' });
  else if (phase === 'Paused' && pause?.cause !== 'Requested') {
    if (spec.resume < pauses) return undefined;
    acceptResults(editor);
    editor.apply({ type: 'Resumed', pause: pauses });
  } else if (phase === 'Paused' && !spec.paused) editor.apply({ type: 'Unpaused' });
  // What fails in a freeze may be repaired in it: the state at its end decides.
  const stop = observations.isFrozen ? undefined : stopCause(editor.state, spec, observations);
  if (stop !== undefined && editor.state.phase !== 'Paused') {
    if (spec.onFailure === 'Rollback' && !NO_FAILURES.has(stop.cause)) return stop.message;
    editor.apply({ type: 'Paused', ...stop });
  } else if (spec.paused && editor.state.phase !== 'Paused')
    editor.apply({ type: 'Paused', cause: 'Requested', message: `${spec.pausedBy ?? 'a user'} requested it` });
  return undefined;
}

/** A user who resumes a plan accepts what has failed, and that its wave was removed; an analysis is made again. */
function acceptResults(editor: StateEditor): void {
  const { pause } = editor.state;
  for (const { id, phase, isAccepted } of editor.state.targets.values())
    if ((phase === 'Failed' || phase === 'Unreachable') && isAccepted !== true) editor.apply({ type: 'Accepted', id });
  const current = currentWave(editor.state);
  const isAnalysis = pause?.cause === 'AnalysisFailed' || pause?.cause === 'AnalysisInconclusive';
  if (isAnalysis && current !== undefined) editor.apply({ type: 'AnalysisRepeated', wave: current.name });
  if (pause?.cause === 'WaveRemoved' && current !== undefined)
    editor.apply({ type: 'RemovalAccepted', wave: current.name });
}

function advance(editor: StateEditor, spec: PlanSpec, observations: Observations): Step {
  // A pause and a freeze let nothing begin; the current wave is verified, and in a pause it soaks on.
  const isStopped = editor.state.phase === 'Paused' || observations.isFrozen;
  const goesOn = () => {
    const { length } = editor.transitions;
    releaseRemoved(editor, spec, observations);
    followWave(editor, spec, observations);
    return editor.transitions.length > length || (!isStopped && startNextWave(editor, spec, observations));
  };
  while (goesOn());
  if (isStopped) return end(editor, [], observations.isFrozen ? undefined : dueMs(editor.state, spec));
  beginApprovals(editor, spec, observations);
  const { state } = editor;
  const isLast = state.waves.length > 0 && currentWave(state) === undefined && nextWave(state, spec) === undefined;
  const targets = [...state.targets.values()];
  if (isLast && !targets.some(({ phase }) => phase === 'Assigned' || phase === 'Approving')) {
    for (const { id, phase } of targets)
      if (phase === 'Pending') editor.apply({ type: 'Skipped', id, reason: 'no wave of the plan contains it' });
    editor.apply({ type: 'Completed' });
    return end(editor, []);
  }
  return end(editor, actionsOf(editor.state, spec, observations), dueMs(editor.state, spec));
}

/** Intends approvals, as many at a time as each wave permits. */
function beginApprovals(editor: StateEditor, spec: PlanSpec, { deliveredOf }: Observations): void {
  // A wave that a user passed goes on with its approvals.
  for (const { name } of editor.state.waves) {
    const members = membersOf(editor.state, name);
    const waiting = members.filter(({ phase }) => phase === 'Assigned').sort(compareTargets);
    if (waiting.length === 0) continue;
    const wave = spec.waves.find((one) => one.name === name);
    // How many at a time is not known of one that was removed.
    if (wave === undefined) continue;
    const { maxConcurrency } = wave;
    const inFlight = members.filter(({ phase }) => phase === 'Approving' || phase === 'Approved').length;
    const most = maxConcurrency === undefined ? members.length : Math.max(1, limitOf(maxConcurrency, members.length));
    for (const { id } of waiting.slice(0, Math.max(0, most - inFlight))) {
      const previous = deliveredOf?.(id);
      editor.apply({ type: 'Approving', id, ...(previous === undefined ? {} : { previous }) });
    }
  }
}

function actionsOf(state: PlanState, spec: PlanSpec, { analysisOf }: Observations): Action[] {
  const { failed, maxFailures } = budgetOf(state, spec);
  const approvals = [...state.targets.values()]
    .filter(({ phase, published }) => phase === 'Approving' || (phase === 'Unreachable' && published === undefined))
    .sort(compareTargets)
    .map(({ id }): Action => ({ type: 'Approve', id }));
  const current = currentWave(state);
  const runs = current?.verifiedMs === undefined ? [] : analysesOf(current, spec);
  const missing = runs.filter((run) => analysisOf(run) === undefined).map((run): Action => ({ type: 'Analyse', run }));
  return failed > maxFailures ? [] : [...approvals, ...missing];
}

function dueMs({ elapsedMs, targets, waves }: PlanState, spec: PlanSpec): number | undefined {
  const due: number[] = [];
  const { verifiedMs, name } = currentWave({ waves }) ?? {};
  if (verifiedMs !== undefined)
    due.push(verifiedMs + (spec.waves.find((wave) => wave.name === name)?.soakMs ?? 0) - elapsedMs);
  for (const { phase, sinceMs } of targets.values())
    if (phase === 'Approved' || phase === 'Approving') due.push(sinceMs + spec.progressDeadlineMs - elapsedMs);
  const next = due.filter((ms) => ms > 0);
  return next.length === 0 ? undefined : next.reduce((a, b) => Math.min(a, b));
}

/** Recorded by itself, before any target is: what failed would otherwise no longer be a reason after a crash in between. */
function startRollback(editor: StateEditor, reason: string): Step {
  editor.apply({ type: 'RollbackStarted', reason });
  return end(editor, [], 0);
}

/** Takes back all that the plan has approved. */
function rollBack(editor: StateEditor, { of }: Observations): Step {
  const actions: Action[] = [];
  for (const target of editor.state.targets.values()) {
    const { id, phase, published, wave } = target;
    const isDone = phase === 'RolledBack' || phase === 'NotRolledBack' || phase === 'Skipped';
    if (isDone || published === undefined || wave === undefined) continue;
    if (phase !== 'RollingBack') editor.apply({ type: 'RollingBack', id });
    const { rollback } = of(target);
    if (rollback === 'Done') editor.apply({ type: 'TargetRolledBack', id });
    else if (rollback !== undefined && 'impossible' in rollback)
      editor.apply({ type: 'NotRolledBack', id, reason: rollback.impossible });
    else {
      if (rollback !== undefined && rollback.waits !== target.reason)
        editor.apply({ type: 'Blocked', id, reason: rollback.waits });
      actions.push({ type: 'RollBack', id });
    }
  }
  if (actions.length === 0) editor.apply({ type: 'RolledBack' });
  return end(editor, actions);
}

function end({ state, transitions }: StateEditor, actions: readonly Action[], nextMs?: number): Step {
  return { state, transitions, actions, nextMs };
}
