import { expect, test } from 'vitest';
import type { MeasurementResult } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { type AnalysisState, type Schedule, step } from './step.ts';

const START = Date.parse('2030-01-01T00:00:00Z');
const SECOND = 1000;

function schedule(part: Partial<Schedule> = {}): Schedule {
  return { name: 'errors', failureLimit: 0, inconclusiveLimit: 0, consecutiveErrorLimit: 4, ...part };
}

/** Runs an analysis of one metric whose measurements have these outcomes, each as soon as it is due; returns the last step and the pauses. */
function play(
  metric: Schedule,
  outcomes: readonly MeasurementResult['phase'][],
  before: { now?: number; terminate?: boolean } = {},
) {
  const spec = { metrics: [metric], terminate: before.terminate ?? false };
  let now = before.now ?? START;
  let last = step(spec, {}, [], now);
  const pauses: number[] = [];
  for (const phase of outcomes) {
    if (last.due.length === 0) {
      if (last.nextAt === undefined) break;
      pauses.push((last.nextAt - now) / SECOND);
      now = last.nextAt;
      last = step(spec, last.state, [], now);
    }
    expect(last.due).toEqual([metric.name]);
    const time = new Date(now).toISOString();
    const measurement = { phase, startedAt: time, finishedAt: time, message: `it was ${phase}` };
    last = step(spec, last.state, [{ metric: metric.name, measurement }], now);
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
  expect(failed.nextAt).toBeUndefined();
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
  const { state } = step({ metrics: [metric], terminate: true }, running.state, [], START + 1);
  expect(state).toMatchObject({ phase: 'Successful', message: 'terminated; no metric had failed' });
});

test('the first metric that fails ends the run, and the worst metric is its result', () => {
  const metrics = [schedule({ name: 'a', interval: '1h', count: 9 }), schedule({ name: 'b' }), schedule({ name: 'c' })];
  const spec = { metrics, terminate: false };
  const time = new Date(START).toISOString();
  const measured = (metric: string, phase: MeasurementResult['phase']) => ({
    metric,
    measurement: { phase, startedAt: time, finishedAt: time },
  });
  const both = [measured('b', 'Inconclusive'), measured('c', 'Failed')];
  const { state, due } = step(spec, {}, [measured('a', 'Successful'), ...both], START);
  expect(state.phase).toBe('Failed');
  expect(state.message).toContain('Metric "c"');
  expect(state.metricResults?.map(({ phase }) => phase)).toEqual(['Successful', 'Inconclusive', 'Failed']);
  expect(due).toEqual([]);
  const late = step(spec, state, [measured('a', 'Failed')], START);
  expect(late.state).toBe(state);
});

test('a clock that jumps neither stops a run nor repeats measurements at once', () => {
  const metric = schedule({ interval: '1m', count: 3 });
  const spec = { metrics: [metric], terminate: false };
  const first = play(metric, ['Successful']);
  const back = START - 3_600 * SECOND;
  // The measurement of before the jump is in the future, and nothing waits an hour for it.
  expect(step(spec, first.state, [], back).due).toEqual(['errors']);
  const delayed: AnalysisState = step(
    { metrics: [schedule({ initialDelay: '5m' })], terminate: false },
    {},
    [],
    START,
  ).state;
  const afterJump = step({ metrics: [schedule({ initialDelay: '5m' })], terminate: false }, delayed, [], back);
  expect(afterJump.nextAt).toBe(back + 300 * SECOND);
  const ahead = START + 24 * 3_600 * SECOND;
  const time = new Date(ahead).toISOString();
  const second = step(
    spec,
    first.state,
    [{ metric: 'errors', measurement: { phase: 'Successful', startedAt: time, finishedAt: time } }],
    ahead,
  );
  expect(second).toMatchObject({ due: [], nextAt: ahead + 60 * SECOND });
});
