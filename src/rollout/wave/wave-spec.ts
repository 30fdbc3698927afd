/** A number of targets, or a part of all targets. */
export type Amount = { readonly count: number } | { readonly percent: number };

/** The targets of a wave. Percentages are cumulative: a wave of 5 % contains that of 1 %. */
export type WaveSize =
  | { readonly percent: number }
  | { readonly count: number }
  /** Those whose observation names the wave in `selectedBy`. */
  | { readonly selected: true };

export interface WaveSpec {
  /** Unique in its plan. */
  readonly name: string;
  readonly size: WaveSize;
  /** Milliseconds for which all targets of the wave must stay verified. */
  readonly soakMs: number;
  /** Distinct users who have to approve the start of the wave; 0 for none. */
  readonly approvals: number;
  /** Analyses that must be successful before the next wave. */
  readonly analyses: number;
  /** Targets of the wave that are approved and not yet verified at a time. Undefined: all. */
  readonly maxConcurrency: Amount | undefined;
}

/** What a plan requests, as the state machine reads it. */
export interface PlanSpec {
  readonly waves: readonly WaveSpec[];
  /** Failed targets that the plan accepts. */
  readonly maxFailures: Amount;
  /** Targets without a report that the plan accepts. */
  readonly maxUnreachable: Amount;
  /** Milliseconds in which a target must be approved, and then verified. */
  readonly progressDeadlineMs: number;
  readonly onFailure: 'Pause' | 'Rollback';
  readonly paused: boolean;
  /** The user who paused it, if that is known. */
  readonly pausedBy?: string;
  readonly abort: boolean;
  readonly rollback: boolean;
  /** Number of the last pause that a user has ended; see `PlanState.pauses`. */
  readonly resume: number;
  /** Waves up to and including this one are passed without verification, soak and analysis. */
  readonly promotePast: string | undefined;
}

/** Removes what a multiplication of decimal fractions adds to a whole number: 1.1 % of 1,000 is 11. */
const ROUNDING = 1e-9;

/** The number of targets that a percentage means, rounded up: 1 % of 30 is 1. */
export function percentOf(percent: number, total: number): number {
  return Math.max(0, Math.min(total, Math.ceil((percent * total) / 100 - ROUNDING)));
}

/** The number of targets that an amount permits. A limit in percent is rounded down, so that 2 % of 30 permits none. */
export function limitOf(amount: Amount, total: number): number {
  return 'count' in amount ? amount.count : Math.floor((amount.percent * total) / 100 + ROUNDING);
}
