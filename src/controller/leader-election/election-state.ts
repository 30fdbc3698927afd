import type { LeaseDraft, StoredLease } from './lease-record.ts';

/** The time of an event, and the random number of its decision. */
export interface Moment {
  /** Of a clock that is never set and does not stop with the process. Every deadline is by this one. */
  readonly monotonicMs: number;
  /** Milliseconds since the epoch, only for the times in the record. */
  readonly wallMs: number;
  /** From 0 to below 1, for jitter. */
  readonly random: number;
}

/** The last known record. */
export interface Sighting {
  /** Undefined if there is no Lease. */
  readonly lease: StoredLease | undefined;
  /** The last version that was seen, also if the Lease is missing now. */
  readonly version: string | undefined;
  readonly atMs: number;
  /** From then on this candidate may acquire the lease. Counted from when it first saw this version, by its own clock. */
  readonly freeAtMs: number;
}

export type RequestKind = 'read' | 'acquire' | 'renew' | 'release';

/** What a candidate knows. All times are by its monotonic clock. */
export interface ElectionState {
  readonly phase: 'electing' | 'stopping' | 'ended';
  readonly seen: Sighting | undefined;
  /** There is one request at a time. */
  readonly request: { readonly kind: RequestKind; readonly sentAtMs: number } | undefined;
  /** It leads before this time; undefined if it does not lead. */
  readonly leadsUntilMs: number | undefined;
  /** The end of the last term. */
  readonly ledUntilMs: number | undefined;
  /** The work of the leader, which can outlast the term although it was aborted. */
  readonly work: 'none' | 'running' | 'aborted';
  /** The next renewal or poll. */
  readonly dueAtMs: number;
  /** No request before this time, after a failure. */
  readonly notBeforeMs: number;
  /** The record may be another one than the seen one: read before the next write. */
  readonly mustRead: boolean;
  /** Writes in a row that lost a race. */
  readonly conflicts: number;
  /** When it stops waiting for the work and for the release. */
  readonly giveUpAtMs: number;
}

export type ElectionEvent =
  /** Time has passed; the first one starts the election. */
  | { readonly type: 'wake' }
  /** The watch shows a change. `version` is that of the object, which is the last one before a deletion. */
  | { readonly type: 'watched'; readonly lease: StoredLease | undefined; readonly version: string }
  /** The results of the request in flight. `conflict` means that the write had no effect, `failed` that it may have had one. */
  | { readonly type: 'read'; readonly lease: StoredLease | undefined }
  | { readonly type: 'written'; readonly lease: StoredLease }
  | { readonly type: 'conflict' }
  | { readonly type: 'failed' }
  /** The work of the leader has ended, by itself or because it was aborted. */
  | { readonly type: 'workEnded' }
  /** The candidate withdraws. */
  | { readonly type: 'stop' };

export type ElectionAction =
  | { readonly type: 'read' }
  | { readonly type: 'write'; readonly kind: RequestKind; readonly lease: LeaseDraft }
  | { readonly type: 'startWork' }
  /** The work has to end; the candidate still leads, so that the work can end gracefully. */
  | { readonly type: 'abortWork' }
  /** The candidate does not lead any more, so the work has to end at once. */
  | { readonly type: 'loseWork' }
  | { readonly type: 'end' };

export interface ElectionStep {
  readonly state: ElectionState;
  /** In the order of their execution. */
  readonly actions: readonly ElectionAction[];
}

export const INITIAL_STATE: ElectionState = {
  phase: 'electing',
  seen: undefined,
  request: undefined,
  leadsUntilMs: undefined,
  ledUntilMs: undefined,
  work: 'none',
  dueAtMs: Number.NEGATIVE_INFINITY,
  notBeforeMs: Number.NEGATIVE_INFINITY,
  mustRead: true,
  conflicts: 0,
  giveUpAtMs: Number.POSITIVE_INFINITY,
};

/** True if the candidate leads at a time. Correct at every time, also if no event was handled since its deadline passed. */
export function leadsAt({ leadsUntilMs }: ElectionState, monotonicMs: number): boolean {
  return leadsUntilMs !== undefined && monotonicMs < leadsUntilMs;
}

/** Milliseconds for which the work of a term has outlasted it; 0 if none does. */
export function overdueMs({ work, leadsUntilMs, ledUntilMs }: ElectionState, monotonicMs: number): number {
  const end = leadsUntilMs ?? ledUntilMs;
  return work === 'none' || end === undefined ? 0 : Math.max(0, monotonicMs - end);
}
