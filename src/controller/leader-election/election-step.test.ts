import { beforeEach, describe, expect, test } from 'vitest';
import { checkElectionConfig, type ElectionConfig } from './election-config.ts';
import { overdueMs } from './election-state.ts';
import { holderOf, type LeaseDraft, type StoredLease } from './lease-record.ts';
import { ELECTION, LeaseServer, TestCandidate } from './testing.ts';

let server: LeaseServer;
let first: TestCandidate;
let second: TestCandidate;

beforeEach(() => {
  server = new LeaseServer();
  first = new TestCandidate('first');
  second = new TestCandidate('second');
});

/** Executes the requests of a candidate until it waits. Returns the other actions. */
function settle(candidate: TestCandidate, event: Parameters<TestCandidate['handle']>[0] = { type: 'wake' }): string[] {
  const others: string[] = [];
  const actions = [...candidate.handle(event)];
  for (let action = actions.shift(); action !== undefined; action = actions.shift()) {
    if (action.type === 'read') actions.push(...candidate.handle({ type: 'read', lease: server.lease }));
    else if (action.type === 'write') {
      const lease = server.write(action.lease);
      actions.push(...candidate.handle(lease === undefined ? { type: 'conflict' } : { type: 'written', lease }));
    } else others.push(action.type);
  }
  return others;
}

const show = (candidate: TestCandidate) => {
  const lease = server.lease as StoredLease;
  return candidate.handle({ type: 'watched', lease, version: lease.metadata.resourceVersion });
};
const advance = (...steps: readonly [TestCandidate, number][]) => {
  for (const [candidate, milliseconds] of steps) candidate.nowMs += milliseconds;
};

describe('a candidate', () => {
  test('creates the Lease, renews it before the deadline, and counts from the start of the request', () => {
    expect(first.handle({ type: 'wake' })).toEqual([{ type: 'read' }]);
    const [create] = first.handle({ type: 'read', lease: undefined });
    expect(create).toMatchObject({ type: 'write', kind: 'acquire', lease: { metadata: { name: 'sluice' } } });
    const lease = server.write((create as { readonly lease: LeaseDraft }).lease) as StoredLease;
    expect(lease.spec).toEqual({
      holderIdentity: 'first',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    advance([first, 3000]);
    expect(first.leads).toBe(false);
    expect(first.handle({ type: 'written', lease })).toEqual([{ type: 'startWork' }]);
    expect(first.delayMs).toBe(2000);
    advance([first, 6999]);
    expect(first.leads).toBe(true);
    advance([first, 1]);
    expect(first.leads).toBe(false);
    // No event was handled since; the next one ends the term before all else.
    expect(first.handle({ type: 'wake' })).toEqual([{ type: 'loseWork' }]);
  });

  test('waits the lease duration after it last saw a change, whatever the times in the record are', () => {
    first.wallMs = 0;
    settle(first);
    advance([second, 500_000]);
    settle(second);
    expect(second.delayMs).toBe(2000);
    advance([second, 14_999], [first, 9000]);
    expect(settle(second)).toEqual([]);
    settle(first);
    show(second);
    advance([second, 14_999]);
    expect(settle(second)).toEqual([]);
    advance([second, 1]);
    expect(settle(second)).toEqual(['startWork']);
    expect(server.lease?.spec).toMatchObject({ holderIdentity: 'second', leaseTransitions: 1 });
  });

  test('uses the duration of the holder, which can be another one than its own', () => {
    first = new TestCandidate('first', { leaseDurationMs: 40_000, renewDeadlineMs: 30_000 });
    settle(first);
    settle(second);
    advance([second, 39_999]);
    expect(settle(second)).toEqual([]);
    advance([second, 1]);
    expect(settle(second)).toEqual(['startWork']);
  });

  describe('that sees an edited Lease', () => {
    const edit = (leaseDurationSeconds: number) => {
      const { metadata, spec } = server.lease as StoredLease;
      server.write({ metadata, spec: { ...spec, holderIdentity: 'editor', leaseDurationSeconds } });
      return show(second);
    };

    beforeEach(() => {
      settle(first);
      settle(second);
      edit(2_000_000_000);
    });

    test('waits a limited time', () => {
      advance([second, 149_999]);
      expect(settle(second)).toEqual([]);
      advance([second, 1]);
      expect(settle(second)).toEqual(['startWork']);
    });

    test('never waits less than its own duration because of the limit, and at most five minutes else', () => {
      const wait = (config: Partial<ElectionConfig>) => {
        const candidate = new TestCandidate('third', config);
        settle(candidate);
        return (candidate.state.seen?.freeAtMs ?? 0) - candidate.nowMs;
      };
      expect(wait({ leaseDurationMs: 60_000 })).toBe(300_000);
      expect(wait({ leaseDurationMs: 600_000 })).toBe(600_000);
    });

    test('waits its own duration once the Lease is deleted', () => {
      server.lease = undefined;
      advance([second, 1000]);
      expect(settle(second, { type: 'watched', lease: undefined, version: '2' })).toEqual([]);
      advance([second, 14_999]);
      expect(settle(second)).toEqual([]);
      advance([second, 1]);
      expect(settle(second)).toEqual(['startWork']);
    });

    test('uses a duration that was corrected', () => {
      edit(3);
      advance([second, 2999]);
      expect(settle(second)).toEqual([]);
      advance([second, 1]);
      expect(settle(second)).toEqual(['startWork']);
    });
  });

  test('that loses a race reads and waits; after two of them it pauses', () => {
    settle(first);
    settle(second);
    advance([second, 15_000]);
    const [write] = second.handle({ type: 'wake' });
    expect(write).toMatchObject({ kind: 'acquire' });
    expect(second.handle({ type: 'conflict' })).toEqual([{ type: 'read' }]);
    expect(second.handle({ type: 'read', lease: server.lease })).toMatchObject([{ kind: 'acquire' }]);
    second.random = 0.5;
    expect(second.handle({ type: 'conflict' })).toEqual([]);
    expect(second.delayMs).toBe(3200);
  });

  test('acquires a released lease at once, by the watch', () => {
    settle(first);
    settle(second);
    expect(settle(first, { type: 'stop' })).toEqual(['abortWork']);
    expect(first.leads).toBe(true);
    expect(settle(first, { type: 'workEnded' })).toEqual(['loseWork', 'end']);
    expect(server.lease?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    const [write] = show(second);
    expect(write).toMatchObject({ kind: 'acquire' });
  });

  test('ignores events of the watch that are behind, but not a read of a restored server', () => {
    settle(first);
    const old = server.lease as StoredLease;
    advance([first, 2000]);
    settle(first);
    const other = { ...old, spec: { ...old.spec, holderIdentity: 'other' } };
    expect(first.handle({ type: 'watched', lease: other, version: '1' })).toEqual([]);
    expect(first.leads).toBe(true);
    advance([first, 2000]);
    first.handle({ type: 'wake' });
    expect(first.handle({ type: 'conflict' })).toEqual([{ type: 'read' }]);
    expect(first.handle({ type: 'read', lease: other })).toEqual([{ type: 'loseWork' }]);
  });
});

describe('a leader', () => {
  beforeEach(() => {
    settle(first);
    expect(first.leads).toBe(true);
  });

  test('that gets no response leads until its deadline, and again when its work has ended', () => {
    advance([first, 2000]);
    first.handle({ type: 'wake' });
    advance([first, 5000]);
    // It waited long enough: it reads at once, since its write can have had an effect.
    expect(first.handle({ type: 'failed' })).toEqual([{ type: 'read' }]);
    advance([first, 3000]);
    expect(first.handle({ type: 'wake' })).toEqual([{ type: 'loseWork' }]);
    expect(settle(first, { type: 'read', lease: server.lease })).toEqual([]);
    expect(overdueMs(first.state, first.nowMs + 1000)).toBe(1000);
    expect(first.leads).toBe(false);
    expect(settle(first, { type: 'workEnded' })).toEqual(['startWork']);
    // The same holder: no transition.
    expect(server.lease?.spec).toMatchObject({ leaseTransitions: 0 });
  });

  test('renews although its clock stands still, since a server ignores a write that changes nothing', () => {
    for (let renewal = 0; renewal < 3; renewal += 1) {
      const version = server.lease?.metadata.resourceVersion;
      first.wallMs -= 2000;
      advance([first, 2000]);
      settle(first);
      expect(server.lease?.metadata.resourceVersion).not.toBe(version);
    }
  });

  test('stops at once when another holds the lease, or the Lease is deleted', () => {
    const lease = server.lease as StoredLease;
    const other = {
      ...lease,
      metadata: { ...lease.metadata, resourceVersion: '2' },
      spec: { ...lease.spec, holderIdentity: 'other' },
    };
    expect(first.handle({ type: 'watched', lease: other, version: '2' })).toEqual([{ type: 'loseWork' }]);
    settle(second);
    server.lease = undefined;
    // It knows of a holder, which does not know yet that the Lease is deleted.
    expect(settle(second, { type: 'watched', lease: undefined, version: '1' })).toEqual([]);
    advance([second, 15_000]);
    expect(settle(second)).toEqual(['startWork']);
  });

  test('renews while its work ends, and gives up without a release if that takes too long', () => {
    settle(first, { type: 'stop' });
    for (let renewal = 0; renewal < 4; renewal += 1) {
      advance([first, 2000]);
      expect(settle(first)).toEqual([]);
      expect(first.leads).toBe(true);
    }
    advance([first, 2000]);
    expect(settle(first)).toEqual(['loseWork', 'end']);
    expect(first.leads).toBe(false);
    expect(holderOf(server.lease)).toBe('first');
    expect(overdueMs(first.state, first.nowMs + 1000)).toBe(1000);
    first.handle({ type: 'workEnded' });
    expect(overdueMs(first.state, first.nowMs + 1000)).toBe(0);
  });

  test('whose work ends by itself withdraws, so that another candidate does it', () => {
    expect(settle(first, { type: 'workEnded' })).toEqual(['loseWork', 'end']);
    expect(holderOf(server.lease)).toBe(undefined);
  });

  test('keeps fields of others', () => {
    const lease = server.lease as StoredLease;
    server.write({
      metadata: { ...lease.metadata, labels: { team: 'a' } },
      spec: { ...lease.spec, strategy: 'OldestEmulationVersion' },
    });
    show(first);
    advance([first, 2000]);
    settle(first);
    expect(server.lease).toMatchObject({
      metadata: { labels: { team: 'a' } },
      spec: { strategy: 'OldestEmulationVersion' },
    });
  });
});

test('a candidate that stops does not leave behind an acquisition whose response was lost', () => {
  first.handle({ type: 'wake' });
  const [write] = first.handle({ type: 'read', lease: undefined });
  server.write((write as { readonly lease: LeaseDraft }).lease);
  settle(second);
  first.handle({ type: 'stop' });
  // The watch shows that it became the holder.
  show(first);
  first.handle({ type: 'failed' });
  advance([first, 2000]);
  expect(settle(first)).toEqual(['end']);
  expect(holderOf(server.lease)).toBe(undefined);
});

test.each([
  [{ identity: '' }, 'identity'],
  [{ retryPeriodMs: 0 }, 'retry period'],
  [{ retryPeriodMs: 9000 }, '1.2 times'],
  [{ renewDeadlineMs: 15_000 }, 'lease duration'],
  [{ leaseDurationMs: 15_500 }, 'whole seconds'],
  [{ leaseDurationMs: Number.NaN }, 'lease duration'],
])('%o is no election', (changes, cause) => {
  expect(() => checkElectionConfig({ ...ELECTION, identity: 'a', ...changes })).toThrow(cause);
});
