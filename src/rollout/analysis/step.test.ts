import { expect, test } from 'vitest';
import type { MeasurementResult } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { type AnalysisState, type Moment, type Schedule, step } from './step.ts';

const START = Date.parse('2030-01-01T00:00:00Z');
const SECOND = 1000;
const HOUR = 3_600 * SECOND;

/** The moment at which a clock that is right shows `now`. */
function at(now: number): Moment {
  return { now, runningMs: now - START };
}

/** A measurement that ends at this moment. */
function measured({ now, runningMs }: Moment, phase: MeasurementResult['phase'] = 'Successful', metric = 'errors') {
  const time = new Date(now).toISOString();
  const measurement = { phase, startedAt: time, finishedAt: time, message: `it was ${phase}` };
  return { metric, measurement, endedMs: runningMs };
}

function schedule(part: Partial<Schedule> = {}): Schedule {
  return { name: 'errors', failureLimit: 0, inconclusiveLimit: 0, consecutiveErrorLimit: 4, ...part };
}

/** Runs an analysis of one metric whose measurements have these outcomes, each as soon as it is due; returns the last step and the pauses. */
function play(metric: Schedule, outcomes: readonly MeasurementResult['phase'][], before: { terminate?: boolean } = {}) {
  const spec = { metrics: [metric], terminate: before.terminate ?? false };
  let now = START;
  let last = step(spec, {}, [], at(now));
  const pauses: number[] = [];
  for (const phase of outcomes) {
    if (last.due.length === 0) {
      if (last.waitMs === undefined) break;
      pauses.push(last.waitMs / SECOND);
      now += last.waitMs;
      last = step(spec, last.state, [], at(now), last.waits);
    }
    expect(last.due).toEqual([metric.name]);
    last = step(spec, last.state, [measured(at(now), phase)], at(now), last.waits);
  }
  return { ...last, pauses };
}

test('without interval and count, one measurement decides', () => {
  expect(play(schedule(), ['Successful']).state).toMatchObject({ phase: 'Successful', message: '' });
  const failed = play(schedule(), ['Failed']);
  expect(failed.state.phase).toBe('Failed');
  expect(failed.state.message).toBe(
    'Metric "errors" assessed Failed due to failed (1) > failureLimit (0): it was Failed',
  );
  expect(failed.waitMs).toBeUndefined();
});

test('an inconclusive measurement is not a success: no result must not promote', () => {
  const { state } = play(schedule(), ['Inconclusive']);
  expect(state.phase).toBe('Inconclusive');
  expect(state.message).toContain('inconclusive (1) > inconclusiveLimit (0)');
});

test('errors are repeated after 10 s, do not count as measurements, and only those in a row end the run', () => {
  const retried = play(schedule(), ['Error', 'Error', 'Error', 'Error', 'Successful']);
  expect(retried.state.phase).toBe('Successful');
  expect(retried.pauses).toEqual([10, 10, 10, 10]);
  expect(retried.state.metricResults?.[0]).toMatchObject({ error: 4, count: 1, consecutiveError: 0 });
  const outage = play(schedule(), ['Error', 'Error', 'Error', 'Error', 'Error']);
  expect(outage.state.phase).toBe('Error');
  expect(outage.state.message).toContain('consecutiveErrors (5) > consecutiveErrorLimit (4)');
});

test('a metric is measured count times at its interval, and tolerates what its limits permit', () => {
  const metric = schedule({ interval: '1m', count: 3, initialDelay: '5m', failureLimit: 1 });
  const passed = play(metric, ['Successful', 'Failed', 'Successful']);
  expect(passed.pauses).toEqual([300, 60, 60]);
  expect(passed.state).toMatchObject({ phase: 'Successful', completedAt: '2030-01-01T00:07:00.000Z' });
  expect(play(metric, ['Failed', 'Failed', 'Successful']).state.phase).toBe('Failed');
});

test('with an interval and no count it goes on until it is terminated', () => {
  const metric = schedule({ interval: '1m' });
  const running = play(metric, Array(20).fill('Successful'));
  expect(running.state.phase).toBe('Running');
  expect(running.state.metricResults?.[0]).toMatchObject({ count: 20 });
  expect(running.state.metricResults?.[0]?.measurements).toHaveLength(10);
  const { state } = step({ metrics: [metric], terminate: true }, running.state, [], at(START + 1));
  expect(state).toMatchObject({ phase: 'Successful', message: 'terminated; no metric had failed' });
});

test('the first metric that fails ends the run, and the worst metric is its result', () => {
  const metrics = [schedule({ name: 'a', interval: '1h', count: 9 }), schedule({ name: 'b' }), schedule({ name: 'c' })];
  const spec = { metrics, terminate: false };
  const both = [measured(at(START), 'Inconclusive', 'b'), measured(at(START), 'Failed', 'c')];
  const { state, due } = step(spec, {}, [measured(at(START), 'Successful', 'a'), ...both], at(START));
  expect(state.phase).toBe('Failed');
  expect(state.message).toContain('Metric "c"');
  expect(state.metricResults?.map(({ phase }) => phase)).toEqual(['Successful', 'Inconclusive', 'Failed']);
  expect(due).toEqual([]);
  const late = step(spec, state, [measured(at(START), 'Failed', 'a')], at(START));
  expect(late.state).toBe(state);
});

test.each([HOUR, -HOUR])('a clock that jumps by %i ms and back shortens no interval, and prolongs none', (jump) => {
  const spec = { metrics: [schedule({ interval: '10m', count: 3 })], terminate: false };
  let last = step(spec, {}, [], at(START));
  last = step(spec, last.state, [measured(at(START))], at(START), last.waits);
  for (const [minutes, offset] of [
    [1, jump],
    [2, 0],
    [3, jump],
    [9, jump],
  ] as const) {
    const runningMs = minutes * 60 * SECOND;
    last = step(spec, last.state, [], { now: START + runningMs + offset, runningMs }, last.waits);
    expect(last).toMatchObject({ due: [], waitMs: (10 - minutes) * 60 * SECOND });
  }
  const runningMs = 10 * 60 * SECOND;
  const moment = { now: START + runningMs + jump, runningMs };
  last = step(spec, last.state, [], moment, last.waits);
  expect(last.due).toEqual(['errors']);
  // What was measured meanwhile is recorded with the time that the clock showed.
  last = step(spec, last.state, [measured(moment)], moment, last.waits);
  expect(last).toMatchObject({ due: [], waitMs: 10 * 60 * SECOND, state: { phase: 'Running' } });
});

test('a clock that jumps ahead does not end the initial delay, and one that goes back does not prolong it', () => {
  const spec = { metrics: [schedule({ initialDelay: '30m' })], terminate: false };
  const { state, waits } = step(spec, {}, [], at(START));
  for (const offset of [HOUR, -HOUR]) {
    const early = { now: START + 2 * SECOND + offset, runningMs: 2 * SECOND };
    const waiting = step(spec, state, [], early, waits);
    expect(waiting).toMatchObject({ due: [], waitMs: (30 * 60 - 2) * SECOND });
    expect(waiting.state.startedAt).toBe(state.startedAt);
    expect(step(spec, state, [], { now: START + offset, runningMs: HOUR / 2 }, waits).due).toEqual(['errors']);
  }
});

test('after a restart the recorded times count, and what the clock has not reached yet delays by one pause at most', () => {
  const spec = { metrics: [schedule({ interval: '10m', count: 3 })], terminate: false };
  const { state } = play(schedule({ interval: '10m', count: 3 }), ['Successful']);
  const restarted = (now: number) => step(spec, state, [], { now, runningMs: 7 });
  expect(restarted(START + 4 * 60 * SECOND)).toMatchObject({ due: [], waitMs: 6 * 60 * SECOND });
  expect(restarted(START + HOUR).due).toEqual(['errors']);
  expect(restarted(START - 24 * HOUR)).toMatchObject({ due: [], waitMs: 10 * 60 * SECOND });
  const delayed = { metrics: [schedule({ initialDelay: '5m' })], terminate: false };
  const started: AnalysisState = step(delayed, {}, [], at(START)).state;
  const back = step(delayed, started, [], { now: START - HOUR, runningMs: 7 });
  expect(back).toMatchObject({ due: [], waitMs: 5 * 60 * SECOND });
});

test('a metric that is measured quickly does not wait for the end of a slow one', () => {
  const metrics = [schedule({ name: 'quick', interval: '1m', count: 3 }), schedule({ name: 'slow', interval: '1m' })];
  const spec = { metrics, terminate: false };
  const { state, waits } = step(spec, {}, [], at(START));
  const end = START + 20 * SECOND;
  const taken = [measured(at(START), 'Successful', 'quick'), measured(at(end), 'Successful', 'slow')];
  expect(step(spec, state, taken, at(end), waits).waitMs).toBe(40 * SECOND);
});
