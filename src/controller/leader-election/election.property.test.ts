import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { type Fault, simulate, type Tally } from './testing-simulation.ts';

const instant = fc.integer({ min: 0, max: 120_000 });
const span = fc.integer({ min: 0, max: 40_000 });
const candidate = fc.nat({ max: 4 });

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ type: fc.constant('pause' as const), candidate, atMs: instant, forMs: span }),
  fc.record({
    type: fc.constant('freeze' as const),
    candidate,
    atMs: instant,
    forMs: fc.integer({ min: 0, max: 15_000 }),
  }),
  fc.record({ type: fc.constant('partition' as const), candidate, atMs: instant, forMs: span }),
  fc.record({ type: fc.constant('noWatch' as const), candidate, atMs: instant, forMs: span }),
  fc.record({ type: fc.constant('outage' as const), candidate, atMs: instant, forMs: span }),
  fc.record({ type: fc.constant('kill' as const), candidate, atMs: instant, forMs: span }),
  fc.record({ type: fc.constant('stop' as const), candidate, atMs: instant, forMs: span }),
  fc.record({
    type: fc.constant('setClock' as const),
    candidate,
    atMs: instant,
    forMs: fc.integer({ min: -1e9, max: 1e9 }),
  }),
);

const scenario = fc.record({
  candidates: fc.integer({ min: 2, max: 5 }),
  /** Of latencies, lost messages, jitter and the offsets of clocks. */
  seed: fc.integer(),
  /** The share of requests and of responses that are lost. */
  loss: fc.constantFrom(0, 0.1, 0.5),
  /** The largest latency of one message. */
  maxLatencyMs: fc.constantFrom(5, 500, 6_000, 20_000),
  /** How much the rates of two clocks differ at most; the durations tolerate 1.5. */
  maxRate: fc.constantFrom(1, 1.1, 1.45),
  faults: fc.array(fault, { maxLength: 12 }),
});

test('never do two candidates lead, whatever is paused, cut off, lost, late or set to another time; then one leads again', () => {
  const tally: Tally = { terms: 0, conflicts: 0, lost: 0, expired: 0, released: 0, late: 0 };
  fc.assert(
    fc.property(scenario, (given) => {
      const result = simulate(given, tally);
      expect(result.violations).toEqual([]);
      expect(result.finalLeaders).toBe(1);
    }),
    { numRuns: runs(3000) },
  );
  // Without these cases the property would prove little.
  if (ALL_RUNS) for (const count of Object.values(tally)) expect(count).toBeGreaterThan(100);
});
