// How an analysis proceeds, with the counters, defaults and texts of Argo Rollouts (analysis/analysis.go and utils/analysis): each metric is
// measured by its own schedule, a metric that exceeds one of its limits ends the run, and the run is as good as its worst metric. All
// functions are pure; the caller takes measurements and keeps the state.

import { ellipsize } from '../../foundation/text/shorten.ts';
import {
  type AnalysisPhase,
  type AnalysisRun,
  MAX_MEASUREMENTS,
  type MeasurementResult,
  type MetricResult,
} from '../../resource/kinds/sluice/wave/analysis-run.ts';
import type { AnalysisMetric } from '../../resource/kinds/sluice/wave/metric-schema.ts';
import { parseDuration } from '../../resource/object/duration.ts';

/** Argo Rollouts: the pause after an error, and of a metric without an interval. Milliseconds. */
const ERROR_INTERVAL_MS = 10_000;
const MAX_MESSAGE_CHARACTERS = 500;

/** From the best to the worst, as in Argo Rollouts. */
const PHASES: readonly AnalysisPhase[] = ['Successful', 'Running', 'Pending', 'Inconclusive', 'Error', 'Failed'];

/** What a run consists of. */
export interface AnalysisSpec {
  readonly metrics: readonly Schedule[];
  readonly terminate: boolean;
}

/** The part of a metric that decides when it is measured, and what the outcomes mean. */
export type Schedule = Pick<
  AnalysisMetric,
  'name' | 'interval' | 'initialDelay' | 'count' | 'failureLimit' | 'inconclusiveLimit' | 'consecutiveErrorLimit'
>;

/** The part of the status of a run that the engine owns. */
export type AnalysisState = Pick<
  NonNullable<AnalysisRun['status']>,
  'phase' | 'message' | 'startedAt' | 'completedAt' | 'metricResults'
>;

/** The outcome of a measurement of a metric. */
export interface Measured {
  readonly metric: string;
  readonly measurement: MeasurementResult;
  /** Running time at its end. */
  readonly endedMs: number;
}

export interface Moment {
  /** Milliseconds since the epoch, for what is recorded. */
  readonly now: number;
  /** Milliseconds of running time, which no jump of the wall clock changes, for what is waited for. */
  readonly runningMs: number;
}

/** Until when metrics wait, in running time, and after how many measurements. A process may forget it at any time. */
export type Waits = ReadonlyMap<string, Wait>;

interface Wait {
  readonly taken: number;
  readonly untilMs: number;
}

export interface Step {
  readonly state: AnalysisState;
  /** Names of the metrics that are to be measured now. */
  readonly due: readonly string[];
  /** Milliseconds until the next measurement; undefined if one is due now, or if the run has ended. */
  readonly waitMs: number | undefined;
  /** For the next step. */
  readonly waits: Waits;
}

const NO_WAITS: Waits = new Map();

/** True for a phase that no measurement changes. */
export function isCompleted(phase: AnalysisPhase | undefined): boolean {
  return phase !== undefined && phase !== 'Pending' && phase !== 'Running';
}

/**
 * Adds measurements to the state of a run, and returns what follows at `moment`. An ended run stays as it is. Measurements of metrics that have
 * ended, or that the run does not have, are ignored. `waits` are those of the step before, of the same state; without them, as after a restart,
 * the recorded times decide what is left of each pause.
 */
export function step(
  spec: AnalysisSpec,
  before: AnalysisState,
  measured: readonly Measured[],
  moment: Moment,
  waits: Waits = NO_WAITS,
): Step {
  const ended = { due: [], waitMs: undefined, waits: NO_WAITS };
  if (isCompleted(before.phase)) return { state: before, ...ended };
  const { now, runningMs } = moment;
  const startedAt = startOf(before, now, waits);
  const known = new Map((before.metricResults ?? []).map((result) => [result.name, result]));
  const results = spec.metrics.map((metric) => {
    const counted = measured
      .filter((one) => one.metric === metric.name)
      .reduce((result, { measurement }) => count(metric, result, measurement), known.get(metric.name) ?? empty(metric));
    return isCompleted(counted.phase) ? counted : { ...counted, ...assess(metric, counted, false) };
  });
  const isEnding = spec.terminate || results.some(({ phase }) => isCompleted(phase) && phase !== 'Successful');
  const metricResults = isEnding
    ? results.map((result, index) => ({ ...result, ...assess(spec.metrics[index], result, true) }))
    : results;
  const started = { startedAt: timeText(startedAt), metricResults };
  if (metricResults.every(({ phase }) => isCompleted(phase))) {
    const worst = metricResults.reduce<MetricResult | undefined>(
      (found, result) => (found === undefined || rank(result) > rank(found) ? result : found),
      undefined,
    );
    const phase = worst?.phase ?? 'Successful';
    const message = endMessage(worst, spec.terminate);
    return {
      state: { ...started, phase, message, completedAt: timeText(Math.max(now, startedAt)) },
      ...ended,
    };
  }
  const nextWaits = new Map(
    spec.metrics.flatMap((metric, index): [string, Wait][] => {
      const { name } = metric;
      const endedMs = measured.findLast((one) => one.metric === name)?.endedMs;
      const wait = waitOf(metric, metricResults[index], { startedAt, moment, known: waits.get(name), endedMs });
      return wait === undefined ? [] : [[name, wait]];
    }),
  );
  const due = [...nextWaits].filter(([, { untilMs }]) => untilMs <= runningMs).map(([name]) => name);
  const waitMs =
    due.length > 0 ? undefined : Math.min(...[...nextWaits.values()].map((one) => one.untilMs)) - runningMs;
  const message = runningMessage(metricResults);
  return { state: { ...started, phase: 'Running', message }, due, waitMs, waits: nextWaits };
}

/** The number of measurements of a metric; undefined for one that is measured until the run ends. */
export function effectiveCount({ count: number = 0, interval }: Schedule): number | undefined {
  if (number > 0) return number;
  return interval === undefined ? 1 : undefined;
}

/** After a restart a clock that went back must not prolong the delays of a run. Without one, no delay is measured by this time. */
function startOf({ startedAt }: AnalysisState, now: number, waits: Waits): number {
  const time = startedAt === undefined || startedAt === null ? Number.NaN : Date.parse(startedAt);
  if (Number.isNaN(time)) return now;
  return waits.size > 0 ? time : Math.min(time, now);
}

function empty({ name }: Schedule): MetricResult {
  const counters = { successful: 0, failed: 0, inconclusive: 0, error: 0, count: 0, consecutiveError: 0 };
  return { name, phase: 'Pending', ...counters, measurements: [] };
}

/** Errors are counted apart: they do not use up the measurements of a metric. */
function count(metric: Schedule, result: MetricResult, measurement: MeasurementResult): MetricResult {
  if (isCompleted(result.phase)) return result;
  const measurements = [...result.measurements, measurement].slice(-MAX_MEASUREMENTS);
  const isError = measurement.phase === 'Error';
  const counted = {
    ...{ ...result, measurements },
    successful: result.successful + Number(measurement.phase === 'Successful'),
    failed: result.failed + Number(measurement.phase === 'Failed'),
    inconclusive: result.inconclusive + Number(measurement.phase === 'Inconclusive'),
    error: result.error + Number(isError),
    count: result.count + Number(!isError),
    consecutiveError: isError ? result.consecutiveError + 1 : 0,
  };
  return { ...counted, ...assess(metric, counted, false) };
}

function assess(
  metric: Schedule | undefined,
  result: MetricResult,
  isEnding: boolean,
): Pick<MetricResult, 'phase' | 'message'> {
  const { phase, message, failed, inconclusive, consecutiveError } = result;
  if (metric === undefined || isCompleted(phase)) return { phase, message };
  if (result.measurements.length === 0) return { phase: isEnding ? 'Successful' : 'Pending', message: undefined };
  const last = result.measurements.at(-1);
  const because = last?.message === undefined ? '' : `: ${last.message}`;
  const over = (phaseOver: AnalysisPhase, text: string) => ({ phase: phaseOver, message: cut(`${text}${because}`) });
  if (failed > metric.failureLimit) return over('Failed', `failed (${failed}) > failureLimit (${metric.failureLimit})`);
  if (inconclusive > metric.inconclusiveLimit)
    return over('Inconclusive', `inconclusive (${inconclusive}) > inconclusiveLimit (${metric.inconclusiveLimit})`);
  if (consecutiveError > metric.consecutiveErrorLimit)
    return over(
      'Error',
      `consecutiveErrors (${consecutiveError}) > consecutiveErrorLimit (${metric.consecutiveErrorLimit})`,
    );
  const wanted = effectiveCount(metric);
  if (isEnding || (wanted !== undefined && result.count >= wanted)) return { phase: 'Successful', message: undefined };
  return { phase: 'Running', message: last?.phase === 'Successful' ? undefined : last?.message };
}

interface Pausing {
  readonly startedAt: number;
  readonly moment: Moment;
  readonly known: Wait | undefined;
  /** End of the last measurement in running time, if it was taken just now. */
  readonly endedMs: number | undefined;
}

/**
 * Until when a metric waits; undefined for one that has ended. The wall clock counts only for a measurement of another process: where it was
 * recorded later than now, the clock went back, and waiting until it reaches that time again could take any time.
 */
function waitOf(
  metric: Schedule,
  result: MetricResult | undefined,
  { startedAt, moment: { now, runningMs }, known, endedMs }: Pausing,
): Wait | undefined {
  if (result === undefined || isCompleted(result.phase)) return undefined;
  const taken = result.count + result.error;
  if (known?.taken === taken) return known;
  const last = result.measurements.at(-1);
  const pauseMs =
    last === undefined
      ? milliseconds(metric.initialDelay, 0)
      : last.phase === 'Error'
        ? ERROR_INTERVAL_MS
        : milliseconds(metric.interval, ERROR_INTERVAL_MS);
  if (endedMs !== undefined) return { taken, untilMs: endedMs + pauseMs };
  const passedMs = now - (last === undefined ? startedAt : Date.parse(last.finishedAt));
  const leftMs = passedMs >= 0 ? Math.max(0, pauseMs - passedMs) : pauseMs;
  return { taken, untilMs: runningMs + leftMs };
}

function milliseconds(duration: string | undefined, otherwise: number): number {
  return duration === undefined ? otherwise : (parseDuration(duration) ?? otherwise);
}

function rank({ phase }: MetricResult): number {
  return PHASES.indexOf(phase);
}

function endMessage(worst: MetricResult | undefined, isTerminated: boolean): string {
  if (worst !== undefined && worst.phase !== 'Successful')
    return cut(`Metric "${worst.name}" assessed ${worst.phase} due to ${worst.message ?? 'its measurements'}`);
  return isTerminated ? 'terminated; no metric had failed' : '';
}

/** Why a run has not ended. */
function runningMessage(results: readonly MetricResult[]): string {
  const waiting = results.filter(({ phase }) => !isCompleted(phase));
  const parts = waiting.map(({ name, count: number, message }) => {
    const about = message === undefined ? '' : ` (last: ${message})`;
    return `${name} after ${number} ${number === 1 ? 'measurement' : 'measurements'}${about}`;
  });
  return cut(`measures ${parts.join(', ')}`);
}

function cut(text: string): string {
  return ellipsize(text, MAX_MESSAGE_CHARACTERS);
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}
