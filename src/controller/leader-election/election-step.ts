import { type ElectionConfig, JITTER_FACTOR } from './election-config.ts';
import type { ElectionEvent, ElectionState, ElectionStep, Moment } from './election-state.ts';
import { heldLease, holderOf, releasedLease, type StoredLease } from './lease-record.ts';
import { type Arrival, observe } from './sighting.ts';

/** Lost races in a row after which a candidate pauses. */
const MAX_QUICK_CONFLICTS = 1;

/**
 * One step of a candidate. Never two candidates lead at the same time, if their clocks run at the same rate to within
 * leaseDuration / renewDeadline:
 *
 * - A leader leads for the renew deadline after it *sent* its last successful write, which took effect later.
 * - Another candidate acquires the lease no sooner than the lease duration after it *saw* the record change, which is later still.
 * - Every write names the version that it replaces, so that a late one has no effect on a newer record.
 *
 * A term whose deadline has passed ends before anything else is considered.
 */
export function step(before: ElectionState, event: ElectionEvent, now: Moment, config: ElectionConfig): ElectionStep {
  if (before.phase === 'ended')
    return { state: event.type === 'workEnded' ? { ...before, work: 'none' } : before, actions: [] };
  const expired =
    before.leadsUntilMs !== undefined && now.monotonicMs >= before.leadsUntilMs ? endTerm(before, now) : same(before);
  const handled = handle(expired.state, event, now, config);
  const decided = decide(handled.state, now, config);
  return { state: decided.state, actions: [...expired.actions, ...handled.actions, ...decided.actions] };
}

/** When the candidate needs the next `wake`. Infinity if only another event can change something. */
export function nextWakeMs(state: ElectionState): number {
  const { phase, request, leadsUntilMs, seen, work, dueAtMs, notBeforeMs, giveUpAtMs } = state;
  if (phase === 'ended') return Number.POSITIVE_INFINITY;
  const endMs = Math.min(leadsUntilMs ?? Number.POSITIVE_INFINITY, giveUpAtMs);
  const leads = leadsUntilMs !== undefined;
  if (request !== undefined || (!leads && work !== 'none')) return endMs;
  if (leads) return Math.min(endMs, Math.max(notBeforeMs, dueAtMs));
  if (phase === 'stopping' || state.mustRead || seen === undefined) return Math.min(endMs, notBeforeMs);
  return Math.min(endMs, Math.max(notBeforeMs, Math.min(dueAtMs, seen.freeAtMs)));
}

function handle(state: ElectionState, event: ElectionEvent, now: Moment, config: ElectionConfig): ElectionStep {
  switch (event.type) {
    case 'wake':
      return same(state);
    case 'watched':
      return arrive(state, { ...event, readAtMs: undefined }, now, config);
    case 'read': {
      const { lease } = event;
      const arrival = { lease, version: lease?.metadata.resourceVersion, readAtMs: state.request?.sentAtMs };
      return arrive({ ...state, request: undefined, mustRead: false }, arrival, now, config);
    }
    case 'written':
      return written(state, event.lease, now, config);
    case 'conflict': {
      const conflicts = state.conflicts + 1;
      const notBeforeMs = conflicts > MAX_QUICK_CONFLICTS ? retryAtMs(state, now, config) : now.monotonicMs;
      return same({ ...state, request: undefined, mustRead: true, conflicts, notBeforeMs });
    }
    case 'failed': {
      const mustRead = state.mustRead || state.request?.kind !== 'read';
      return same({ ...state, request: undefined, mustRead, notBeforeMs: retryAtMs(state, now, config) });
    }
    case 'workEnded': {
      const ended: ElectionState = { ...state, work: 'none' };
      // A leader without work withdraws, so that another candidate does it.
      return state.leadsUntilMs === undefined ? same(ended) : same(withdraw(ended, now, config));
    }
    case 'stop': {
      const stopping = withdraw(state, now, config);
      if (state.work !== 'running') return same(stopping);
      return { state: { ...stopping, work: 'aborted' }, actions: [{ type: 'abortWork' }] };
    }
  }
}

function arrive(state: ElectionState, arrival: Arrival, now: Moment, config: ElectionConfig): ElectionStep {
  const seen = observe(state.seen, arrival, now.monotonicMs, config);
  const next = { ...state, seen };
  if (state.leadsUntilMs !== undefined)
    // Another candidate can hold the lease now, or can acquire it at any moment.
    return holderOf(seen.lease) === config.identity ? same(next) : endTerm(next, now);
  return same({ ...next, dueAtMs: now.monotonicMs + pauseMs(next, now, config) });
}

function written(before: ElectionState, lease: StoredLease, now: Moment, config: ElectionConfig): ElectionStep {
  const { request, seen: last } = before;
  const version = lease.metadata.resourceVersion;
  const seen = observe(last, { lease, version, readAtMs: undefined }, now.monotonicMs, config);
  const state = { ...before, request: undefined, mustRead: false, conflicts: 0, seen };
  if (request === undefined || request.kind === 'release') return same(state);
  // The watch was faster and shows what came after this write.
  if (holderOf(seen.lease) !== config.identity) return same(state);
  const leadsUntilMs = request.sentAtMs + config.renewDeadlineMs;
  const dueAtMs = now.monotonicMs + config.retryPeriodMs;
  if (state.leadsUntilMs !== undefined) return same({ ...state, leadsUntilMs, dueAtMs });
  const starts = state.phase === 'electing' && state.work === 'none' && leadsUntilMs > now.monotonicMs;
  if (!starts) return same({ ...state, dueAtMs: now.monotonicMs });
  return { state: { ...state, leadsUntilMs, dueAtMs, work: 'running' }, actions: [{ type: 'startWork' }] };
}

/** Sends the next request if it is time for one. */
function decide(state: ElectionState, now: Moment, config: ElectionConfig): ElectionStep {
  const { phase, work, leadsUntilMs, seen, request, dueAtMs, notBeforeMs, giveUpAtMs, mustRead } = state;
  const nowMs = now.monotonicMs;
  if (phase === 'stopping') {
    if (leadsUntilMs !== undefined && (work === 'none' || nowMs >= giveUpAtMs)) {
      const ended = endTerm(state, now);
      const next = decide(ended.state, now, config);
      return { state: next.state, actions: [...ended.actions, ...next.actions] };
    }
    const mayHold = holderOf(seen?.lease) === config.identity || (mustRead && seen !== undefined);
    const waits = leadsUntilMs !== undefined || work !== 'none' || (request !== undefined && request.kind !== 'read');
    if (nowMs >= giveUpAtMs || (!mayHold && !waits)) return end(state);
  }
  if (request !== undefined) return same(state);
  if (leadsUntilMs !== undefined) {
    if (nowMs < Math.max(dueAtMs, notBeforeMs)) return same(state);
    return mustRead ? read(state, now) : hold(state, 'renew', now, config);
  }
  // The next term, or the release, has to wait until the work of the last one has ended.
  if (work !== 'none') return same(state);
  if (nowMs < notBeforeMs) return same(state);
  if (phase === 'stopping') return mustRead ? read(state, now) : release(state, now);
  if (seen === undefined || mustRead) return read(state, now);
  if (nowMs >= seen.freeAtMs) return hold(state, 'acquire', now, config);
  return nowMs >= dueAtMs ? read(state, now) : same(state);
}

function read(state: ElectionState, now: Moment): ElectionStep {
  return { state: { ...state, request: { kind: 'read', sentAtMs: now.monotonicMs } }, actions: [{ type: 'read' }] };
}

function hold(state: ElectionState, kind: 'acquire' | 'renew', now: Moment, config: ElectionConfig): ElectionStep {
  const lease = heldLease(state.seen?.lease, config, now.wallMs);
  const request = { kind, sentAtMs: now.monotonicMs };
  return { state: { ...state, request }, actions: [{ type: 'write', kind, lease }] };
}

function release(state: ElectionState, now: Moment): ElectionStep {
  if (state.seen?.lease === undefined) return end(state);
  const lease = releasedLease(state.seen.lease, now.wallMs);
  const request = { kind: 'release', sentAtMs: now.monotonicMs } as const;
  return { state: { ...state, request }, actions: [{ type: 'write', kind: 'release', lease }] };
}

function endTerm(state: ElectionState, now: Moment): ElectionStep {
  const work = state.work === 'none' ? 'none' : 'aborted';
  const ledUntilMs = Math.min(state.leadsUntilMs ?? now.monotonicMs, now.monotonicMs);
  // What comes next has no reason to wait for the time of the next renewal.
  const dueAtMs = now.monotonicMs;
  return { state: { ...state, work, leadsUntilMs: undefined, ledUntilMs, dueAtMs }, actions: [{ type: 'loseWork' }] };
}

function withdraw(state: ElectionState, now: Moment, config: ElectionConfig): ElectionState {
  if (state.phase !== 'electing') return state;
  return { ...state, phase: 'stopping', giveUpAtMs: now.monotonicMs + config.renewDeadlineMs };
}

function end(state: ElectionState): ElectionStep {
  return { state: { ...state, phase: 'ended', request: undefined }, actions: [{ type: 'end' }] };
}

/** Counted from the start of the failed request: a leader that waited for a response has no more time to lose. */
function retryAtMs(state: ElectionState, now: Moment, config: ElectionConfig): number {
  return Math.max(now.monotonicMs, (state.request?.sentAtMs ?? now.monotonicMs) + pauseMs(state, now, config));
}

/** Candidates pause with jitter; a leader has no other to collide with. */
function pauseMs({ leadsUntilMs }: ElectionState, { random }: Moment, { retryPeriodMs }: ElectionConfig): number {
  return leadsUntilMs === undefined ? retryPeriodMs * (1 + JITTER_FACTOR * random) : retryPeriodMs;
}

function same(state: ElectionState): ElectionStep {
  return { state, actions: [] };
}
