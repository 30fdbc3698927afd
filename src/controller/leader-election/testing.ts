import { leaseKind } from '../../resource/kinds/coordination/lease.ts';
import type { ElectionConfig } from './election-config.ts';
import { type ElectionAction, type ElectionEvent, INITIAL_STATE, leadsAt } from './election-state.ts';
import { nextWakeMs, step } from './election-step.ts';
import type { LeaseDraft, StoredLease } from './lease-record.ts';

export const ELECTION: Omit<ElectionConfig, 'identity'> = {
  namespace: 'default',
  name: 'sluice',
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};

/** The Lease of a server, with its rules for versions. */
export class LeaseServer {
  lease: StoredLease | undefined;
  #version = 0;

  /** Undefined if the write lost a race. */
  write({ metadata, spec }: LeaseDraft): StoredLease | undefined {
    if (metadata.resourceVersion !== this.lease?.metadata.resourceVersion) return undefined;
    // A server ignores a write that changes nothing.
    if (JSON.stringify(spec) === JSON.stringify(this.lease?.spec)) return this.lease;
    this.#version += 1;
    const { apiVersion, kind } = leaseKind;
    const resourceVersion = String(this.#version);
    const stored = { uid: 'uid', creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion };
    this.lease = { apiVersion, kind, metadata: { ...metadata, ...stored }, spec };
    return this.lease;
  }
}

/** One candidate without requests and timers: its state, and what it wanted to do. */
export class TestCandidate {
  readonly config: ElectionConfig;
  state = INITIAL_STATE;
  nowMs = 0;
  wallMs = Date.UTC(2026, 0, 1);
  random = 0;

  constructor(identity: string, config: Partial<ElectionConfig> = {}) {
    this.config = { ...ELECTION, identity, ...config };
  }

  /** Handles an event; returns the actions. */
  handle(event: ElectionEvent): readonly ElectionAction[] {
    const now = { monotonicMs: this.nowMs, wallMs: this.wallMs + this.nowMs, random: this.random };
    const { state, actions } = step(this.state, event, now, this.config);
    this.state = state;
    return actions;
  }

  get leads(): boolean {
    return leadsAt(this.state, this.nowMs);
  }

  /** Milliseconds until the next wake. */
  get delayMs(): number {
    return nextWakeMs(this.state) - this.nowMs;
  }
}
