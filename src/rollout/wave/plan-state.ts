/**
 * - Pending: in no wave yet. Ahead: published before its wave.
 * - Assigned: in a wave, not yet approved because of `maxConcurrency`. Approving: its approval is recorded as intended.
 * - Approved: published, and not verified yet. Verified, Failed, Unreachable: the result so far.
 * - Skipped: removed from the plan.
 * - RollingBack, RolledBack, NotRolledBack: the plan takes its approval back.
 */
export const TARGET_PHASES = [
  ...(['Pending', 'Ahead', 'Assigned', 'Approving', 'Approved', 'Verified', 'Failed', 'Unreachable'] as const),
  ...(['Skipped', 'RollingBack', 'RolledBack', 'NotRolledBack'] as const),
] as const;
export type TargetPhase = (typeof TARGET_PHASES)[number];

export const PLAN_PHASES = [
  ...(['Pending', 'Running', 'Paused', 'Completed', 'Aborted', 'RollingBack', 'RolledBack'] as const),
] as const;
export type PlanPhase = (typeof PLAN_PHASES)[number];

/**
 * Why a plan is paused. A user ends `Requested` by the field that requests it, and all others by `resume`. `WaveRemoved`: the spec has the wave in
 * progress no longer, which also ends once it has the wave again, or passes it.
 */
export const PAUSE_CAUSES = [
  ...(['Requested', 'MaxFailures', 'MaxUnreachable', 'AnalysisFailed', 'AnalysisInconclusive'] as const),
  'WaveRemoved',
] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];

/** Where a target comes in the plan: first those of the start, by their keys, then those that joined, in the order in which they did. */
export interface TargetOrder {
  /** 0 for a target that was there when the first wave started. */
  readonly joined: number;
  readonly key: string;
}

/** The record of one target. It is the only source of decisions about what happened to it. */
export interface TargetRecord {
  readonly id: string;
  readonly order: TargetOrder;
  /** Name and commit of the revision that is to be approved. */
  readonly revision: string;
  readonly commit: string;
  readonly phase: TargetPhase;
  /** Name of its wave. */
  readonly wave?: string;
  /** Intended approvals so far. */
  readonly attempt: number;
  /** Number of the published revision. */
  readonly published?: number;
  /** Number of the revision that was delivered when the approval was intended. */
  readonly previous?: number;
  /** When the phase or the reason changed, in the time of the plan. */
  readonly sinceMs: number;
  readonly reason?: string;
  /** True for a failure that a user has accepted by resuming the plan. */
  readonly isAccepted?: true;
}

export interface WaveRecord {
  readonly name: string;
  /** All of these in the time of the plan. */
  readonly startedMs: number;
  /** Since when all of its targets have a result. */
  readonly verifiedMs?: number;
  /** Number of the present attempt of its analyses, from 1. */
  readonly analysis: number;
  readonly analysedMs?: number;
  readonly completedMs?: number;
  /** True if a user passed it. */
  readonly isPromoted?: true;
  /** True for a wave that the spec has no longer, and that a user lets end without it by resuming the plan. */
  readonly isRemoved?: true;
}

export interface PlanState {
  readonly phase: PlanPhase;
  readonly pause?: { readonly cause: PauseCause; readonly message: string };
  /** Pauses so far, apart from requested ones. */
  readonly pauses: number;
  /** Times at which targets joined after the start. */
  readonly joins: number;
  /**
   * The time of the plan: milliseconds for which Sluice has observed it. Neither a jump of the wall clock nor a time without Sluice adds
   * to it, so that neither ends a soak or a deadline.
   */
  readonly elapsedMs: number;
  /** Started waves, in order. */
  readonly waves: readonly WaveRecord[];
  readonly targets: ReadonlyMap<string, TargetRecord>;
}

export const INITIAL_STATE: PlanState = {
  ...{ phase: 'Pending', pauses: 0, joins: 0, elapsedMs: 0, waves: [], targets: new Map() },
};

/** True for a plan that will never approve again. */
export function isFinal(phase: PlanPhase): boolean {
  return phase === 'Aborted' || phase === 'RolledBack';
}

/** True for a plan of which no wave is left. A change of its spec may still roll back what a completed one has approved. */
export function isOver(phase: PlanPhase): boolean {
  return phase === 'Completed' || isFinal(phase);
}

/** True for a plan whose targets wait for it: only it approves them automatically. */
export function holdsTargets(phase: PlanPhase): boolean {
  return phase === 'Pending' || phase === 'Running' || phase === 'Paused';
}

export function compareTargets({ order: a, id }: TargetRecord, { order: b, id: other }: TargetRecord): number {
  if (a.joined !== b.joined) return a.joined - b.joined;
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return id < other ? -1 : Number(id > other);
}
