import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import type { MeasurementResult } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import { type AnalysisState, isCompleted, type Schedule, step, type Waits } from './step.ts';

type Outcome = MeasurementResult['phase'];

const OUTCOMES = ['Successful', 'Failed', 'Inconclusive', 'Error'] as const;
const limit = fc.integer({ min: 0, max: 3 });
const metric = fc.record({
  count: fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined }),
  interval: fc.option(fc.constantFrom('1s', '30s', '5m'), { nil: undefined }),
  initialDelay: fc.option(fc.constantFrom('0', '10s', '1h'), { nil: undefined }),
  ...{ failureLimit: limit, inconclusiveLimit: limit, consecutiveErrorLimit: limit },
});
/**
 * What happens at a turn: time passes, perhaps exactly what the run waits for; the wall clock is set, also back; the process may be another one; and
 * the metrics that are due are measured, or what was measured is lost.
 */
const turn = fc.record({
  milliseconds: fc.option(fc.integer({ min: 0, max: 600_000 }), { nil: undefined }),
  setBy: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: -86_400_000, max: 86_400_000 }) },
  ),
  isRestarted: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
  outcomes: fc.array(fc.constantFrom(...OUTCOMES), { minLength: 3, maxLength: 3 }),
  isLost: fc.boolean(),
});

/** The pause of a metric before the next measurement, in milliseconds. */
function pauseOf({ interval, initialDelay }: Omit<Schedule, 'name'>, outcomes: readonly Outcome[]): number {
  const of = (text: string | undefined, otherwise: number) =>
    text === undefined ? otherwise : (parseDuration(text) ?? otherwise);
  if (outcomes.length === 0) return of(initialDelay, 0);
  return outcomes.at(-1) === 'Error' ? 10_000 : of(interval, 10_000);
}

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
      let offset = Date.parse('2030-01-01T00:00:00Z');
      let runningMs = 0;
      let state: AnalysisState = {};
      let waits: Waits | undefined;
      let waitMs = 0;
      /** Running time at which each metric may be measured next, and must be. */
      const pauses: { earliest: number; latest: number }[] = [];
      for (const { milliseconds = waitMs, setBy, isRestarted, outcomes, isLost } of turns) {
        runningMs += milliseconds;
        offset += setBy;
        if (pauses.length === 0)
          for (const one of metrics) {
            const end = runningMs + pauseOf(one, []);
            pauses.push({ earliest: end, latest: end });
          }
        if (isRestarted) {
          waits = undefined;
          // What is left of a pause is known by the wall clock alone; a whole one is the most that it can be.
          metrics.forEach((one, index) => {
            const latest = runningMs + pauseOf(one, taken[index] ?? []);
            pauses[index] = { earliest: runningMs, latest };
          });
        }
        const moment = { now: runningMs + offset, runningMs };
        const before = step(spec, state, [], moment, waits);
        waits = before.waits;
        waitMs = before.waitMs ?? 0;
        const isOver = isCompleted(state.phase);
        expect(before.due.length > 0 || before.waitMs !== undefined).toBe(!isOver);
        if (isOver) expect(before.state).toBe(state);
        if (before.waitMs !== undefined) expect(before.waitMs).toBeGreaterThan(0);
        // No jump of the clock shortens a pause or prolongs it.
        metrics.forEach(({ name }, index) => {
          const { earliest = 0, latest = 0 } = pauses[index] ?? {};
          const isOpen = before.state.metricResults?.some((one) => one.name === name && !isCompleted(one.phase));
          if (isOver || isOpen !== true) return;
          if (runningMs < earliest) expect(before.due).not.toContain(name);
          if (runningMs >= latest) expect(before.due).toContain(name);
          if (before.waitMs !== undefined) expect(runningMs + before.waitMs).toBeLessThanOrEqual(latest);
        });
        if (isLost) continue;
        const time = new Date(moment.now).toISOString();
        const measured = before.due.map((name) => {
          const index = metrics.findIndex((one) => one.name === name);
          const phase = outcomes[index] ?? 'Successful';
          taken[index]?.push(phase);
          const next = runningMs + pauseOf(metrics[index] ?? ({} as never), [phase]);
          pauses[index] = { earliest: next, latest: next };
          return { metric: name, measurement: { phase, startedAt: time, finishedAt: time }, endedMs: runningMs };
        });
        const after = step(spec, before.state, measured, moment, waits);
        ({ state, waits } = after);
        waitMs = after.waitMs ?? 0;
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
