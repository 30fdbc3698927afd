import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type DeploymentReason, type DeploymentState, state } from '../status/engine-report.ts';
import { targetDeployment } from '../status/target-deployment.ts';
import { emptyHistory, type TargetHistory, timeOf } from './change.ts';
import { newResults } from './new-results.ts';
import { recordDeliveries } from './record-deliveries.ts';
import { recordFacts } from './record-facts.ts';
import { recordHealth } from './record-health.ts';
import { revertedIn, revertReason } from './revert-reason.ts';

type TargetStatus = NonNullable<DeliveryTarget['status']>;

const START = Date.parse('2026-03-01T00:00:00Z');
const MINUTE = 60_000;
const WEB = { repository: 'apps', package: 'web' };
const SYNCED = state('True', 'Synced', '');
const HEALTHY = state('True', 'Healthy', '');
const DEGRADED = state('False', 'Degraded', 'web: 2/3');
const SYNCING = [state('Unknown', 'Syncing', ''), state('Unknown', 'Stale', '')] as const;
const at = (minutes: number) => timeOf(START + minutes * MINUTE);

/** A target with one package, and what its engine reports of it. Times in minutes after the start. */
class World {
  history: TargetHistory = emptyHistory(START, START);
  status: TargetStatus = { conditions: [] };

  deliver(revision: number, minutes: number): void {
    const commit = `c${minutes}`;
    const event = { ...WEB, revision, time: START + minutes * MINUTE };
    const { history } = recordDeliveries(this.history, [event], START + minutes * MINUTE);
    this.history = { ...history, commit };
    this.status = { ...this.status, lastCommit: commit, packages: [{ ...WEB, revision, commit: 's', tree: 't' }] };
    this.record(minutes);
  }

  report(synced: DeploymentState, healthy: DeploymentState, minutes: number): void {
    const deployment = targetDeployment([{ ...WEB, synced, healthy }], {
      delivered: state('True', 'Synced', ''),
      commit: this.status.lastCommit,
      objects: [],
      before: this.status.deployment,
      now: START + minutes * MINUTE,
    });
    this.status = { ...this.status, deployment };
    this.record(minutes);
  }

  record(minutes: number): void {
    this.history = recordHealth(this.history, this.status, this.status.packages ?? [], START + minutes * MINUTE);
  }
}

describe('when a change is healthy, failed and restored', () => {
  test('it is healthy from the first report on, and what follows does not move that', () => {
    const world = new World();
    world.deliver(1, 0);
    world.report(...SYNCING, 1);
    world.report(SYNCED, HEALTHY, 3);
    world.report(SYNCED, state('Unknown', 'Progressing', ''), 4);
    world.report(SYNCED, HEALTHY, 5);
    expect(world.history.changes).toEqual([
      { ...WEB, revision: 1, deliveredAt: at(0), syncedAt: at(3), healthyAt: at(3) },
    ]);
  });

  test('a failure within an hour is one of the change, and it is restored by itself', () => {
    const world = new World();
    world.deliver(1, 0);
    world.report(SYNCED, HEALTHY, 3);
    world.report(SYNCED, DEGRADED, 60);
    world.report(SYNCED, HEALTHY, 75);
    world.report(SYNCED, DEGRADED, 80);
    expect(world.history.changes[0]).toMatchObject({ failure: 'Unhealthy', failedAt: at(60), restoredAt: at(75) });
  });

  test('a later failure has another cause, and so has a state that is not known', () => {
    const world = new World();
    world.deliver(1, 0);
    world.report(SYNCED, HEALTHY, 3);
    world.report(state('Unknown', 'Unreachable', ''), state('Unknown', 'Unreachable', ''), 10);
    world.report(SYNCED, DEGRADED, 61);
    expect(world.history.changes[0]).not.toHaveProperty('failedAt');
  });

  test('the next revision restores a failed one; health that holds since before is of now', () => {
    const world = new World();
    world.deliver(1, 0);
    world.report(state('False', 'Failed', 'no such kind'), state('Unknown', 'Stale', ''), 2);
    world.deliver(2, 10);
    // A report about the earlier commit supports nothing.
    world.record(11);
    expect(world.history.changes[1]).not.toHaveProperty('failedAt');
    world.report(SYNCED, HEALTHY, 12);
    world.deliver(3, 20);
    world.report(SYNCED, HEALTHY, 21);
    expect(world.history.changes).toMatchObject([
      { failedAt: at(2), restoredAt: at(12), replacedAt: at(10) },
      { healthyAt: at(12), replacedAt: at(20) },
      { syncedAt: at(21), healthyAt: at(21) },
    ]);
    expect(world.history.changes[0]).not.toHaveProperty('healthyAt');
  });

  test('an automatic rollback confirms the failure, and the earlier revision restores it', () => {
    const world = new World();
    world.deliver(1, 0);
    world.report(SYNCED, HEALTHY, 1);
    world.deliver(2, 5);
    world.report(...SYNCING, 5);
    world.report(SYNCED, DEGRADED, 6);
    const rollbacks = [{ ...WEB, from: 2, to: 1, time: at(16), reason: 'Degraded' }];
    world.status = { ...world.status, rollbacks };
    world.record(16);
    world.deliver(1, 17);
    world.report(...SYNCING, 17);
    world.report(SYNCED, HEALTHY, 18);
    expect(world.history.changes).toHaveLength(2);
    expect(world.history.changes[1]).toMatchObject({ failure: 'RolledBack', failedAt: at(6), restoredAt: at(18) });
    expect(world.history.changes[1]).not.toHaveProperty('healthyAt');
  });

  test('deliveries before the observation have no health', () => {
    const world = new World();
    world.history = emptyHistory(START - 1000 * MINUTE, START + 100 * MINUTE);
    world.deliver(1, 0);
    world.report(SYNCED, HEALTHY, 101);
    expect(world.history.changes).toEqual([{ ...WEB, revision: 1, deliveredAt: at(0) }]);
  });
});

describe('facts of the repository', () => {
  test('a revert makes the reverted revision a failed one, and creation is added as soon as it is known', () => {
    const world = new World();
    world.deliver(1, 0);
    world.deliver(2, 10);
    world.deliver(3, 20);
    expect(recordFacts(world.history, () => undefined)).toBe(world.history);
    const history = recordFacts(world.history, ({ revision }) => ({
      createdAt: at(revision * 10 - 15),
      ...(revision === 3 ? { reverts: revertedIn(revertReason(2, 1, 'too slow')) } : {}),
    }));
    expect(history.changes).toMatchObject([
      { createdAt: at(-5) },
      { createdAt: at(5), failure: 'Reverted', failedAt: at(20) },
      { createdAt: at(15) },
    ]);
    expect(newResults(world.history, history, [])).toMatchObject({ failures: ['Reverted'] });
    expect(revertedIn('the operator reverts v2 to v1')).toBeUndefined();
    expect(revertedIn('reverts v2 to v1')).toBe(2);
  });
});

const reasons: readonly (readonly [DeploymentState['status'], DeploymentReason])[] = [
  ['True', 'Healthy'],
  ['False', 'Degraded'],
  ['Unknown', 'Progressing'],
  ['Unknown', 'Unreachable'],
];
const step = fc.oneof(
  fc.record({ type: fc.constant('deliver' as const), revision: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ type: fc.constant('report' as const), synced: fc.boolean(), health: fc.constantFrom(...reasons) }),
);

test('times of a change are in order and never move, and counts of metrics are those of the history', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(step, fc.integer({ min: -30, max: 90 })), { maxLength: 30 }), (steps) => {
      const world = new World();
      let minutes = 0;
      const totals = { leads: 0, failures: 0, restored: 0 };
      for (const [one, pause] of steps) {
        // The clock jumps back too.
        minutes = Math.max(0, minutes + pause);
        const before = world.history;
        if (one.type === 'deliver') world.deliver(one.revision, minutes);
        else if (one.synced) world.report(SYNCED, state(...one.health, ''), minutes);
        else world.report(...SYNCING, minutes);
        world.history = recordFacts(world.history, ({ deliveredAt }) => ({ createdAt: deliveredAt }));
        for (const [index, change] of before.changes.entries()) {
          const { failure: _, ...times } = change;
          expect(world.history.changes[index]).toMatchObject(times);
        }
        const results = newResults(before, world.history, []);
        totals.leads += results.leadTimesMs.length;
        totals.failures += results.failures.length;
        totals.restored += results.timesToRestoreMs.length;
        expect([...results.leadTimesMs, ...results.timesToRestoreMs].every((time) => time >= 0)).toBe(true);
      }
      const { changes } = world.history;
      for (const { deliveredAt, syncedAt = deliveredAt, healthyAt, failedAt, restoredAt } of changes) {
        const order = [deliveredAt, syncedAt, healthyAt ?? syncedAt].map(Date.parse);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
        if (failedAt !== undefined) expect(Date.parse(failedAt)).toBeGreaterThanOrEqual(Date.parse(deliveredAt));
        if (restoredAt !== undefined)
          expect(Date.parse(restoredAt)).toBeGreaterThanOrEqual(Date.parse(failedAt ?? '9999-01-01T00:00:00Z'));
      }
      expect(totals).toEqual({
        leads: changes.filter(({ healthyAt }) => healthyAt !== undefined).length,
        failures: changes.filter(({ failedAt }) => failedAt !== undefined).length,
        restored: changes.filter(({ restoredAt }) => restoredAt !== undefined).length,
      });
    }),
    { numRuns: runs(1000) },
  );
});
