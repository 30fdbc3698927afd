import type { PauseCause, PlanState, TargetOrder, TargetRecord, WaveRecord } from './plan-state.ts';
import { membersOf } from './wave-members.ts';

/** One change of the state of a plan. Nothing else changes a state, so that the log of transitions determines it. */
export type Transition =
  /** Time passed while the plan was observed. */
  | { readonly type: 'Elapsed'; readonly ms: number }
  | {
      readonly type: 'Joined';
      readonly id: string;
      readonly order: TargetOrder;
      readonly revision: string;
      readonly commit: string;
    }
  /** Another revision, or another commit, of a target that waits for its wave. */
  | { readonly type: 'Retargeted'; readonly id: string; readonly revision: string; readonly commit: string }
  /** `isDeselected`: the selector alone removed it, so that no approval of it counts as begun once it is selected again. */
  | { readonly type: 'Skipped'; readonly id: string; readonly reason: string; readonly isDeselected?: true }
  | { readonly type: 'Ahead'; readonly id: string; readonly published: number }
  /** Its place in the order, as of the start of the plan. */
  | { readonly type: 'Ordered'; readonly id: string; readonly key: string }
  | { readonly type: 'Assigned'; readonly id: string; readonly wave: string }
  /** It waits for a later wave again: its wave is smaller, selects others, or was removed. */
  | { readonly type: 'Released'; readonly id: string }
  /** `previous` is the number of the revision that is delivered; undefined if none is known. */
  | { readonly type: 'Approving'; readonly id: string; readonly previous?: number }
  /** A gate or a policy refuses the approval for this reason; undefined if no longer. */
  | { readonly type: 'Blocked'; readonly id: string; readonly reason: string | undefined }
  | { readonly type: 'Approved'; readonly id: string; readonly published: number }
  | { readonly type: 'Verified'; readonly id: string }
  /** Why its last verification did not succeed; its deadline runs on. */
  | { readonly type: 'Unverified'; readonly id: string; readonly reason: string }
  | { readonly type: 'Failed' | 'Unreachable'; readonly id: string; readonly reason: string }
  /** A verified target that its engine reports as unhealthy while its wave soaks. */
  | { readonly type: 'Regressed'; readonly id: string; readonly reason: string }
  | { readonly type: 'Accepted'; readonly id: string }
  | { readonly type: 'RollingBack'; readonly id: string }
  | { readonly type: 'TargetRolledBack'; readonly id: string }
  | { readonly type: 'NotRolledBack'; readonly id: string; readonly reason: string }
  | { readonly type: 'WaveStarted' | 'WaveVerified' | 'WaveUnverified' | 'WaveAnalysed'; readonly wave: string }
  | { readonly type: 'AnalysisRepeated' | 'WaveCompleted' | 'WavePromoted'; readonly wave: string }
  /** The spec has the wave in progress no longer, which a user accepts; or it has it again. */
  | { readonly type: 'RemovalAccepted' | 'WaveRestored'; readonly wave: string }
  /**
   * A completed plan has targets again: its last waves that found none are to be started again. `wave` is the last one that has targets, if it goes
   * on, since it takes some of those that are back.
   */
  | { readonly type: 'Reopened'; readonly wave?: string }
  | { readonly type: 'Started' | 'Unpaused' | 'Completed' | 'Aborted' | 'RolledBack' }
  | { readonly type: 'Paused'; readonly cause: PauseCause; readonly message: string }
  | { readonly type: 'Resumed'; readonly pause: number }
  | { readonly type: 'RollbackStarted'; readonly reason: string };

/** A state that `apply` changes in place. */
interface Draft {
  state: PlanState;
  readonly targets: Map<string, TargetRecord>;
}

/** Applies transitions one after the other. */
export class StateEditor {
  readonly #draft: Draft;
  readonly #transitions: Transition[] = [];

  constructor(state: PlanState) {
    const targets = new Map(state.targets);
    this.#draft = { state: { ...state, targets }, targets };
  }

  get state(): PlanState {
    return this.#draft.state;
  }

  get transitions(): readonly Transition[] {
    return this.#transitions;
  }

  apply(transition: Transition): void {
    this.#transitions.push(transition);
    applyTo(this.#draft, transition);
  }
}

/** The state after a log. The same log leads to the same state. */
export function replay(state: PlanState, transitions: Iterable<Transition>): PlanState {
  const editor = new StateEditor(state);
  for (const transition of transitions) editor.apply(transition);
  return editor.state;
}

function applyTo(draft: Draft, transition: Transition): void {
  const { elapsedMs } = draft.state;
  switch (transition.type) {
    case 'Elapsed':
      set(draft, { elapsedMs: elapsedMs + transition.ms });
      break;
    case 'Joined': {
      const { id, order, revision, commit } = transition;
      const record: TargetRecord = { id, order, revision, commit, phase: 'Pending', attempt: 0, sinceMs: elapsedMs };
      draft.targets.set(id, record);
      set(draft, { joins: Math.max(draft.state.joins, order.joined) });
      break;
    }
    case 'Retargeted':
      change(draft, transition.id, { revision: transition.revision, commit: transition.commit });
      break;
    case 'Skipped':
      move(draft, transition.id, 'Skipped', {
        reason: transition.reason,
        ...(transition.isDeselected === true ? { attempt: 0 } : {}),
      });
      break;
    case 'Ahead':
      move(draft, transition.id, 'Ahead', { published: transition.published });
      break;
    case 'Ordered':
      order(draft, transition.id, transition.key);
      break;
    case 'Assigned':
      move(draft, transition.id, 'Assigned', { wave: transition.wave });
      break;
    case 'Released':
      release(draft, transition.id);
      break;
    case 'Approving': {
      const attempt = (draft.targets.get(transition.id)?.attempt ?? 0) + 1;
      const { previous } = transition;
      move(draft, transition.id, 'Approving', { attempt, ...(previous === undefined ? {} : { previous }) });
      break;
    }
    case 'Blocked':
      block(draft, transition.id, transition.reason);
      break;
    case 'Approved':
      move(draft, transition.id, 'Approved', { published: transition.published });
      break;
    case 'Verified':
      move(draft, transition.id, 'Verified', {});
      break;
    case 'Unverified':
      change(draft, transition.id, { reason: transition.reason });
      break;
    case 'Failed':
    case 'Unreachable':
      move(draft, transition.id, transition.type, { reason: transition.reason });
      break;
    case 'Regressed':
      move(draft, transition.id, 'Approved', { reason: transition.reason });
      break;
    case 'Accepted':
      change(draft, transition.id, { isAccepted: true });
      break;
    case 'RollingBack':
      move(draft, transition.id, 'RollingBack', {});
      break;
    case 'TargetRolledBack':
      move(draft, transition.id, 'RolledBack', {});
      break;
    case 'NotRolledBack':
      move(draft, transition.id, 'NotRolledBack', { reason: transition.reason });
      break;
    default:
      applyToPlan(draft, transition);
      break;
  }
}

type PlanTransition = Exclude<Transition, { readonly id: string } | { readonly type: 'Elapsed' }>;

function applyToPlan(draft: Draft, transition: PlanTransition): void {
  const { elapsedMs, waves, pauses } = draft.state;
  switch (transition.type) {
    case 'WaveStarted':
      set(draft, { waves: [...waves, { name: transition.wave, startedMs: elapsedMs, analysis: 1 }] });
      break;
    case 'WaveVerified':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, verifiedMs: elapsedMs }));
      break;
    case 'WaveUnverified':
      // What an analysis found out about the other state of the wave does not count.
      changeWave(draft, transition.wave, ({ verifiedMs, analysedMs, ...wave }) =>
        verifiedMs === undefined ? wave : { ...wave, analysis: wave.analysis + 1 },
      );
      break;
    case 'WaveAnalysed':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, analysedMs: elapsedMs }));
      break;
    case 'AnalysisRepeated':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, analysis: wave.analysis + 1 }));
      break;
    case 'WaveCompleted':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, completedMs: elapsedMs }));
      break;
    case 'WavePromoted':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, completedMs: elapsedMs, isPromoted: true }));
      break;
    case 'RemovalAccepted':
      changeWave(draft, transition.wave, (wave) => ({ ...wave, isRemoved: true }));
      break;
    case 'WaveRestored':
      changeWave(draft, transition.wave, ({ isRemoved: _removed, ...wave }) => wave);
      break;
    case 'Started':
    case 'Unpaused':
      setPhase(draft, transition.type === 'Started' || waves.length > 0 ? 'Running' : 'Pending');
      break;
    case 'Resumed':
      setPhase(draft, 'Running');
      break;
    case 'Reopened':
      reopen(draft, transition.wave);
      break;
    case 'Paused': {
      const { cause, message } = transition;
      setPhase(draft, 'Paused');
      set(draft, { pause: { cause, message }, pauses: cause === 'Requested' ? pauses : pauses + 1 });
      break;
    }
    case 'RollbackStarted':
      setPhase(draft, 'RollingBack');
      break;
    default:
      setPhase(draft, transition.type);
      break;
  }
}

function reopen(draft: Draft, wave: string | undefined): void {
  setPhase(draft, 'Running');
  const { waves } = draft.state;
  const kept = waves.slice(0, waves.findLastIndex(({ name }) => membersOf(draft.state, name).length > 0) + 1);
  set(draft, { waves: kept });
  for (const target of draft.targets.values())
    if (target.wave !== undefined && kept.every(({ name }) => name !== target.wave)) leaveWave(draft, target.id);
  if (wave === undefined) return;
  // What an analysis found out about it without the others does not count.
  changeWave(draft, wave, ({ name, startedMs, analysis, verifiedMs }) => {
    return { name, startedMs, analysis: verifiedMs === undefined ? analysis : analysis + 1 };
  });
}

function set(draft: Draft, changes: Partial<PlanState>): void {
  draft.state = { ...draft.state, ...changes };
}

function setPhase(draft: Draft, phase: PlanState['phase']): void {
  const { pause: _ended, ...state } = draft.state;
  draft.state = { ...state, phase };
}

function change(draft: Draft, id: string, changes: Partial<TargetRecord>): void {
  const record = draft.targets.get(id);
  if (record !== undefined) draft.targets.set(id, { ...record, ...changes });
}

function order(draft: Draft, id: string, key: string): void {
  const record = draft.targets.get(id);
  if (record !== undefined) draft.targets.set(id, { ...record, order: { ...record.order, key } });
}

function release(draft: Draft, id: string): void {
  move(draft, id, 'Pending', {});
  leaveWave(draft, id);
}

function leaveWave(draft: Draft, id: string): void {
  const { wave: _left, ...record } = draft.targets.get(id) ?? {};
  if ('id' in record) draft.targets.set(id, record);
}

/** A new phase ends the reason of the last one. */
function move(draft: Draft, id: string, phase: TargetRecord['phase'], changes: Partial<TargetRecord>): void {
  const record = draft.targets.get(id);
  if (record === undefined) return;
  const { reason: _ended, isAccepted: _accepted, ...rest } = record;
  draft.targets.set(id, { ...rest, phase, sinceMs: draft.state.elapsedMs, ...changes });
}

/** A time in which a rule refuses the approval does not count for the deadline. */
function block(draft: Draft, id: string, reason: string | undefined): void {
  const record = draft.targets.get(id);
  if (record === undefined) return;
  const { reason: _before, ...rest } = record;
  const sinceMs = draft.state.elapsedMs;
  draft.targets.set(id, { ...rest, sinceMs, ...(reason === undefined ? {} : { reason }) });
}

function changeWave(draft: Draft, name: string, edit: (wave: WaveRecord) => WaveRecord): void {
  set(draft, { waves: draft.state.waves.map((wave) => (wave.name === name ? edit(wave) : wave)) });
}
