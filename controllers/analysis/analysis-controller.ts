import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type AnalysisRun, analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { type AnalysisTemplate, analysisTemplateKind } from '../../src/resource/kinds/sluice/wave/analysis-template.ts';
import { usedArgs } from '../../src/resource/kinds/sluice/wave/check-metrics.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import {
  type AnalysisState,
  isCompleted,
  type Measured,
  type Moment,
  step,
  type Waits,
} from '../../src/rollout/analysis/step.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import type { FetchJson } from './fetch-json.ts';
import { runSources } from './run-sources.ts';
import { takeMeasurement } from './take-measurement.ts';

const ANALYSIS_ACTOR = 'controller:analysis';

export interface AnalysisOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly fetch: FetchJson;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** Workers mostly wait for sources; a slow one occupies one of them for the time of a measurement. */
const MAX_CONCURRENT = 64;
const MAX_CONCURRENT_PER_NAMESPACE = 16;

type Status = NonNullable<AnalysisRun['status']>;

/** Until when the metrics of a run wait, as long as the template is the same. */
interface RunMemory {
  readonly uid: string;
  readonly template: NonNullable<Status['template']>;
  readonly waits: Waits;
}

/** Takes the measurements of AnalysisRuns, and decides how they end. */
export function analysisController(options: AnalysisOptions): ControllerOptions {
  const { clock, fetch } = options;
  const client = options.client.as({ name: ANALYSIS_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: ANALYSIS_ACTOR }),
  );

  /** Of the runs in progress. Forgotten with the process, after which the times in their status count. */
  const memories = new Map<string, RunMemory>();
  const moment = (): Moment => ({ now: clock.now(), runningMs: clock.monotonic() });
  const forget = (key: ObjectKey) => {
    memories.delete(keyText(key));
    events.forget(key);
  };

  return {
    name: 'analysis',
    sources: runSources(),
    maxConcurrentReconciles: MAX_CONCURRENT,
    namespaceShare: { most: MAX_CONCURRENT_PER_NAMESPACE, mostFailing: MAX_CONCURRENT_PER_NAMESPACE },
    maxDelayMs: 60_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const run = await client.find(analysisRunKind, key, { signal });
      if (run === undefined) {
        forget(key);
        return undefined;
      }
      if (run.metadata.deletionTimestamp !== undefined || isCompleted(run.status?.phase)) {
        memories.delete(keyText(key));
        return undefined;
      }
      const { namespace = DEFAULT_NAMESPACE } = run.metadata;
      const template = await client.find(
        analysisTemplateKind,
        { namespace, name: run.spec.templateRef.name },
        { signal },
      );
      const problem = obstacle(run, template);
      if (problem !== undefined || template === undefined) return wait(run, problem ?? '');
      warnOfInsecure(run, template);
      const state = stateFor(run, template);
      const spec = { metrics: template.spec.metrics, terminate: run.spec.terminate === true };
      const { due, waits } = step(spec, state, [], moment(), waitsOf(run, template));
      const measured = await measure(run, template, due, signal);
      const next = step(spec, state, measured, moment(), waits);
      // What another writer prevented from being recorded was not measured.
      const isRecorded = await write(run, next.state, templateOf(template));
      if (isRecorded && !isCompleted(next.state.phase))
        memories.set(keyText(key), { uid: run.metadata.uid, template: templateOf(template), waits: next.waits });
      if (next.due.length > 0) return { requeueAfter: 0, reason: 'the next measurement' };
      if (next.waitMs === undefined) return undefined;
      return { requeueAfter: next.waitMs, reason: 'the next measurement' };
    },
  };

  function waitsOf(run: Stored<AnalysisRun>, template: Stored<AnalysisTemplate>): Waits | undefined {
    const known = memories.get(keyText(keyOf(run)));
    const isSame = known?.uid === run.metadata.uid && sameValue(known.template, templateOf(template));
    return isSame ? known.waits : undefined;
  }

  function warnOfInsecure(run: Stored<AnalysisRun>, template: Stored<AnalysisTemplate>): void {
    const names = template.spec.metrics.flatMap(({ name, provider: { prometheus, http } }) =>
      prometheus?.insecure === true || http?.insecure === true ? name : [],
    );
    if (names.length === 0) return;
    const message = `the certificates of the sources of these metrics are not verified (insecure), so that their values may come from another server: ${names.join(', ')}; name the authority in caSecretRef instead`;
    events.record(run, 'Warning', 'InsecureSource', message, 'insecure');
  }

  function measure(
    run: Stored<AnalysisRun>,
    template: Stored<AnalysisTemplate>,
    due: readonly string[],
    signal: AbortSignal,
  ): Promise<Measured[]> {
    const { namespace = DEFAULT_NAMESPACE } = run.metadata;
    const context = {
      ...{ client, fetch, namespace, signal },
      ...{ args: argsOf(run, template), targets: run.spec.scope?.targets, now: () => clock.now() },
    };
    return Promise.all(
      template.spec.metrics
        .filter(({ name }) => due.includes(name))
        .map(async (metric) => {
          const measurement = await takeMeasurement(metric, context);
          return { metric: metric.name, measurement, endedMs: clock.monotonic() };
        }),
    );
  }

  /** A run without a usable template has no results: those of an earlier template would be taken for those of the next one. */
  async function wait(run: Stored<AnalysisRun>, message: string): Promise<undefined> {
    memories.delete(keyText(keyOf(run)));
    events.record(run, 'Warning', 'Pending', message, 'phase');
    await write(run, { phase: 'Pending', message, metricResults: [] }, undefined);
  }

  /** Returns false if the run was changed or deleted meanwhile, so that nothing is recorded. */
  async function write(
    run: Stored<AnalysisRun>,
    { phase = 'Pending', message = '', startedAt, completedAt, metricResults }: AnalysisState,
    template: Status['template'],
  ): Promise<boolean> {
    const isEnded = isCompleted(phase);
    try {
      await writeStatus(client, analysisRunKind, run, {
        conditions: [{ type: 'Complete', status: isEnded ? 'True' : 'False', reason: phase, message }],
        fields: {
          ...{
            phase,
            message,
            startedAt: startedAt ?? null,
            completedAt: completedAt ?? null,
            metricResults,
            template,
          },
          observedGeneration: run.metadata.generation,
        },
        now: clock.now(),
      });
    } catch (error) {
      if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'Conflict')) throw error;
      return false;
    }
    if (!isEnded) return true;
    const text = message === '' ? 'all metrics are successful' : message;
    events.record(run, phase === 'Successful' ? 'Normal' : 'Warning', phase, text, 'phase');
    forget(keyOf(run));
    return true;
  }
}

/** Why a run cannot begin, with the next step. */
function obstacle(run: AnalysisRun, template: Stored<AnalysisTemplate> | undefined): string | undefined {
  const { name } = run.spec.templateRef;
  if (template === undefined || template.metadata.deletionTimestamp !== undefined)
    return `AnalysisTemplate ${name} does not exist; create it`;
  const given = argsOf(run, template);
  const missing = [...new Set(template.spec.metrics.flatMap((metric) => [...usedArgs(metric)]))].filter(
    (arg) => !given.has(arg),
  );
  if (missing.length > 0)
    return `AnalysisTemplate ${name} requires the arguments ${missing.join(', ')}; give the template default values, or create a run with them in spec.args`;
  return undefined;
}

/** The values of a run, and the defaults of its template. */
function argsOf({ spec }: AnalysisRun, template: AnalysisTemplate): ReadonlyMap<string, string> {
  const defaults = (template.spec.args ?? []).flatMap(({ name, value }): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  const known = new Set((template.spec.args ?? []).map(({ name }) => name));
  const given = (spec.args ?? []).filter(({ name }) => known.has(name));
  return new Map([...defaults, ...given.map(({ name, value }): [string, string] => [name, value])]);
}

function templateOf({ metadata: { uid, generation = 0 } }: Stored<AnalysisTemplate>): RunMemory['template'] {
  return { uid, generation };
}

/** The state to go on from. The results of another template say nothing about this one. */
function stateFor({ status }: AnalysisRun, { metadata }: Stored<AnalysisTemplate>): AnalysisState {
  const { template } = status ?? {};
  return template?.uid === metadata.uid && template.generation === metadata.generation ? (status ?? {}) : {};
}
