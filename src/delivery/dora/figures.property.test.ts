import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { type Change, timeOf } from './change.ts';
import { figuresOf } from './figures.ts';

const HOUR = 3_600_000;
const START = Date.parse('2026-03-01T00:00:00Z');

interface Hours {
  readonly created?: number;
  readonly delivered: number;
  readonly healthy?: number;
  readonly failed?: number;
  readonly restored?: number;
}

/** A change with times in hours after the start. */
function change({ created, delivered, healthy, failed, restored }: Hours, revision = 1): Change {
  const at = (hours: number) => timeOf(START + hours * HOUR);
  return {
    ...{ repository: 'apps', package: 'web', revision, deliveredAt: at(delivered) },
    ...(created === undefined ? {} : { createdAt: at(created) }),
    ...(healthy === undefined ? {} : { healthyAt: at(healthy) }),
    ...(failed === undefined ? {} : { failedAt: at(failed), failure: 'Unhealthy' as const }),
    ...(restored === undefined ? {} : { restoredAt: at(restored) }),
  };
}

const PERIOD = { from: START, to: START + 240 * HOUR };

describe('figures by hand', () => {
  test('of five changes in ten days', () => {
    const figures = figuresOf(
      [
        change({ created: 0, delivered: 1, healthy: 2 }),
        change({ created: 10, delivered: 12, healthy: 14, failed: 14.5, restored: 16.5 }, 2),
        change({ created: 20, delivered: 28, failed: 28.5, restored: 29 }, 3),
        change({ created: 30, delivered: 35, healthy: 36 }, 4),
        change({ created: 40, delivered: 41 }, 5),
        change({ created: 50, delivered: 240, healthy: 241 }, 6),
      ],
      PERIOD,
    );
    expect(figures).toEqual({
      ...{ deployments: 5, deploymentsPerDay: 0.5 },
      // 2, 4 and 6 hours.
      leadTime: { count: 3, p50Seconds: 4 * 3600, p90Seconds: 6 * 3600 },
      ...{ judgedChanges: 4, failedChanges: 2, changeFailureRate: 0.5 },
      timeToRestore: { count: 2, p50Seconds: 1800, p90Seconds: 7200 },
    });
  });

  test('without data there are no figures, and none is 0', () => {
    expect(figuresOf([], PERIOD)).toEqual({ deployments: 0, judgedChanges: 0, failedChanges: 0 });
    const open = figuresOf([change({ created: 0, delivered: 1 })], PERIOD);
    expect(open).toEqual({ deployments: 1, deploymentsPerDay: 0.1, judgedChanges: 0, failedChanges: 0 });
  });

  test('a draft that seems to be created after its delivery has no lead time', () => {
    expect(figuresOf([change({ created: 5, delivered: 1, healthy: 9 })], PERIOD).leadTime).toBeUndefined();
  });

  test('a short period counts as a day', () => {
    const one = [change({ delivered: 0 }), change({ delivered: 0.5 }, 2)];
    expect(figuresOf(one, { from: START, to: START + HOUR }).deploymentsPerDay).toBe(2);
  });
});

const hours = fc.integer({ min: 0, max: 300 });
const anyChange = fc
  .record({ delivered: hours, lead: fc.option(hours), health: fc.option(hours), down: fc.option(hours) })
  .map(({ delivered, lead, health, down }) =>
    change({
      delivered,
      ...(lead === null ? {} : { created: delivered - lead }),
      ...(health === null ? {} : { healthy: delivered + health }),
      ...(down === null ? {} : { failed: delivered, restored: delivered + down }),
    }),
  );

test('figures are of the data: in any order, within its range, and p50 is not above p90', () => {
  fc.assert(
    fc.property(fc.array(anyChange, { maxLength: 40 }), (changes) => {
      const figures = figuresOf(changes, PERIOD);
      expect(figuresOf(changes.toReversed(), PERIOD)).toEqual(figures);
      const { deployments, judgedChanges, failedChanges, changeFailureRate, leadTime, timeToRestore } = figures;
      expect(failedChanges).toBeLessThanOrEqual(judgedChanges);
      expect(judgedChanges).toBeLessThanOrEqual(deployments);
      expect(changeFailureRate === undefined).toBe(judgedChanges === 0);
      expect(figures.deploymentsPerDay === undefined).toBe(deployments === 0);
      for (const one of [leadTime, timeToRestore]) {
        if (one === undefined) continue;
        expect(one.count).toBeGreaterThan(0);
        expect(one.p50Seconds).toBeLessThanOrEqual(one.p90Seconds);
        expect(one.p50Seconds).toBeGreaterThanOrEqual(0);
      }
      // At least nine tenths of the values are not above p90.
      const leads = changes
        .filter(({ deliveredAt }) => Date.parse(deliveredAt) < PERIOD.to)
        .flatMap(({ createdAt, healthyAt }) =>
          createdAt === undefined || healthyAt === undefined
            ? []
            : (Date.parse(healthyAt) - Date.parse(createdAt)) / 1000,
        );
      expect(leadTime?.count ?? 0).toBe(leads.length);
      if (leadTime !== undefined) {
        expect(leads).toContain(leadTime.p50Seconds);
        const within = leads.filter((one) => one <= leadTime.p90Seconds);
        expect(within.length / leads.length).toBeGreaterThanOrEqual(0.9);
      }
    }),
    { numRuns: runs(1000) },
  );
});
