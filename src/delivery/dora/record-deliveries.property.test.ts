import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { packageKey } from '../selection/select-revisions.ts';
import { emptyHistory, MAX_CHANGES, timeOf } from './change.ts';
import { newResults } from './new-results.ts';
import { type DeliveryEvent, recordDeliveries } from './record-deliveries.ts';

const START = Date.parse('2026-03-01T00:00:00Z');
const NOW = START + 86_400_000;
const EMPTY = emptyHistory(START, START);

function deliveries(...revisions: readonly (number | undefined)[]): DeliveryEvent[] {
  return revisions.map((revision, index) => ({
    ...{ repository: 'apps', package: 'web', revision, time: START + (index + 1) * 1000 },
  }));
}

const at = (seconds: number) => timeOf(START + seconds * 1000);

describe('which deployment is a change', () => {
  test('a repair is none, and a lower revision makes the last change a failed one, once', () => {
    const { history, added } = recordDeliveries(EMPTY, deliveries(1, 1, 2, 1, 2, 1, 3), NOW);
    const web = { repository: 'apps', package: 'web' };
    expect(history.changes).toEqual([
      { ...web, revision: 1, deliveredAt: at(1), replacedAt: at(3) },
      { ...web, revision: 2, deliveredAt: at(3), failure: 'Downgraded', failedAt: at(4), replacedAt: at(7) },
      { ...web, revision: 3, deliveredAt: at(7) },
    ]);
    expect(newResults(EMPTY, history, added)).toMatchObject({ deployments: 3, failures: ['Downgraded'] });
  });

  test('a package that is removed has not failed, also if a lower revision comes back', () => {
    const { history } = recordDeliveries(EMPTY, deliveries(2, undefined, 1), NOW);
    expect(history.changes).toMatchObject([{ revision: 2, removedAt: at(2) }]);
    expect(history.changes[0]).not.toHaveProperty('failedAt');
  });

  test('a delivery of what the folder had before the history began is none', () => {
    const event = { repository: 'apps', package: 'web', revision: 4, time: START };
    expect(recordDeliveries(EMPTY, [{ ...event, before: 4 }], NOW).added).toEqual([]);
    expect(recordDeliveries(EMPTY, [{ ...event, before: 5 }], NOW).added).toEqual([]);
    expect(recordDeliveries(EMPTY, [{ ...event, before: 3 }], NOW).added).toHaveLength(1);
  });

  test('text that cannot come from a Repository is left out', () => {
    const events = [
      { repository: 'a'.repeat(254), package: 'web', revision: 1, time: START },
      { repository: 'apps', package: 'w'.repeat(513), revision: 1, time: START },
      { repository: 'apps', package: 'web', revision: 1, time: Number.NaN },
      { repository: 'apps', package: 'web\nHEAD', revision: 1, time: START },
    ];
    expect(recordDeliveries(EMPTY, events, NOW)).toEqual({ history: EMPTY, added: [] });
  });

  test('changes before the observation are in the history, and not in the metrics', () => {
    const late = emptyHistory(START, NOW);
    const { history, added } = recordDeliveries(late, deliveries(1, 2, 1), NOW);
    expect(history.changes).toHaveLength(2);
    expect(newResults(undefined, history, added)).toMatchObject({ deployments: 0, failures: [] });
  });
});

const anyEvent = fc.record({
  repository: fc.constantFrom('apps', 'core'),
  package: fc.constantFrom('web', 'net/upf'),
  revision: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  // A clock that jumps, into the future as well.
  time: fc.integer({ min: START - 1_000_000, max: NOW + 1_000_000 }),
});

test('each revision counts once, times never go back, and parts give the same as the whole', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.nat(40), (events, cut) => {
      const { history, added } = recordDeliveries(EMPTY, events, NOW);
      const first = recordDeliveries(EMPTY, events.slice(0, cut), NOW);
      const second = recordDeliveries(first.history, events.slice(cut), NOW);
      expect(second.history).toEqual(history);
      expect([...first.added, ...second.added]).toEqual(added);

      const times = history.changes.map(({ deliveredAt }) => Date.parse(deliveredAt));
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(Math.max(0, ...times)).toBeLessThanOrEqual(NOW);
      for (const [key, own] of Map.groupBy(history.changes, packageKey)) {
        const numbers = own.map(({ revision }) => revision);
        expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
        // The model: a change is a new maximum of the revisions of the package.
        let highest = 0;
        const maxima = events.filter(({ revision = 0, ...one }) => {
          if (packageKey(one) !== key || revision <= highest) return false;
          highest = revision;
          return true;
        });
        expect(numbers).toEqual(maxima.map(({ revision }) => revision));
        expect(own.slice(0, -1).every(({ replacedAt }) => replacedAt !== undefined)).toBe(true);
        for (const one of own) {
          const { deliveredAt, failedAt = deliveredAt, replacedAt = deliveredAt } = one;
          expect(Date.parse(failedAt)).toBeGreaterThanOrEqual(Date.parse(deliveredAt));
          expect(Date.parse(replacedAt)).toBeGreaterThanOrEqual(Date.parse(deliveredAt));
        }
      }
    }),
    { numRuns: runs(1000) },
  );
});

test('the history is bounded, and shows from when on it is complete', () => {
  const events = Array.from({ length: MAX_CHANGES + 200 }, (_, index) => ({
    ...{ repository: 'apps', package: `p${index}`, revision: 1, time: START + index * 1000 },
  }));
  const { history, added } = recordDeliveries(EMPTY, events, NOW);
  expect(history.changes).toHaveLength(MAX_CHANGES);
  expect(added).toHaveLength(MAX_CHANGES + 200);
  expect(Date.parse(history.completeFrom)).toBe(START + 199_000 + 1);
  expect(history.changes[0]).toMatchObject({ package: 'p200' });
});
