import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import type { MeasurementResult } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { type AnalysisState, isCompleted, type Schedule, step } from './step.ts';

type Outcome = MeasurementResult['phase'];

const OUTCOMES = ['Successful', 'Failed', 'Inconclusive', 'Error'] as const;
const limit = fc.integer({ min: 0, max: 3 });
const metric = fc.record({
  count: fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined }),
  interval: fc.option(fc.constantFrom('1s', '30s', '5m'), { nil: undefined }),
  initialDelay: fc.option(fc.constantFrom('0', '10s', '1h'), { nil: undefined }),
  ...{ failureLimit: limit, inconclusiveLimit: limit, consecutiveErrorLimit: limit },
});
/** What happens at a turn: the clock moves, also back, and the metrics that are due are measured, or the process dies before that. */
const turn = fc.record({
  milliseconds: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 600_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -86_400_000, max: 86_400_000 }) },
  ),
  outcomes: fc.array(fc.constantFrom(...OUTCOMES), { minLength: 3, maxLength: 3 }),
  isLost: fc.boolean(),
});

/** The verdict on the outcomes of one metric, by the documentation of Argo Rollouts; undefined while it goes on. */
function verdict(one: Omit<Schedule, 'name'>, outcomes: readonly Outcome[]): Outcome | undefined {
  const wanted = (one.count ?? 0) > 0 ? one.count : one.interval === undefined ? 1 : undefined;
  let errors = 0;
  const taken: Outcome[] = [];
  for (const outcome of outcomes) {
    if (outcome === 'Error') {
      errors += 1;
      if (errors > one.consecutiveErrorLimit) return 'Error';
      continue;
    }
    errors = 0;
    taken.push(outcome);
    const number = (what: Outcome) => taken.filter((each) => each === what).length;
    if (number('Failed') > one.failureLimit) return 'Failed';
    if (number('Inconclusive') > one.inconclusiveLimit) return 'Inconclusive';
    if (wanted !== undefined && taken.length >= wanted) return 'Successful';
  }
  return undefined;
}

test('a run ends as the outcomes of its metrics say, whatever the clock does, and is bounded', () => {
  fc.assert(
    fc.property(fc.array(metric, { minLength: 1, maxLength: 3 }), fc.array(turn, { maxLength: 60 }), (parts, turns) => {
      const metrics = parts.map((part, index) => ({ name: `m${index}`, ...part }));
      const spec = { metrics, terminate: false };
      const taken = metrics.map((): Outcome[] => []);
      let now = Date.parse('2030-01-01T00:00:00Z');
      let state: AnalysisState = {};
      for (const { milliseconds, outcomes, isLost } of turns) {
        now += milliseconds;
        const before = step(spec, state, [], now);
        const isOver = isCompleted(state.phase);
        expect(before.due.length > 0 || before.nextAt !== undefined).toBe(!isOver);
        if (isOver) expect(before.state).toBe(state);
        // No pause is longer than what the metrics say, even after a jump of the clock.
        if (before.nextAt !== undefined) expect(before.nextAt - now).toBeLessThanOrEqual(3_600_000);
        if (before.nextAt !== undefined) expect(before.nextAt).toBeGreaterThan(now);
        if (isLost) continue;
        const time = new Date(now).toISOString();
        const measured = before.due.map((name) => {
          const index = metrics.findIndex((one) => one.name === name);
          const phase = outcomes[index] ?? 'Successful';
          taken[index]?.push(phase);
          return { metric: name, measurement: { phase, startedAt: time, finishedAt: time } };
        });
        state = step(spec, before.state, measured, now).state;
        const verdicts = metrics.map((one, index) => verdict(one, taken[index] ?? []));
        const bad = verdicts.filter((one) => one !== undefined && one !== 'Successful');
        const expected = bad.includes('Failed') ? 'Failed' : bad.includes('Error') ? 'Error' : bad[0];
        const isDone = verdicts.every((one) => one === 'Successful');
        expect(state.phase).toBe(expected ?? (isDone ? 'Successful' : 'Running'));
        for (const result of state.metricResults ?? []) expect(result.measurements.length).toBeLessThanOrEqual(10);
        expect(JSON.parse(JSON.stringify(state))).toEqual(state);
      }
    }),
    { numRuns: runs(2000) },
  );
});
