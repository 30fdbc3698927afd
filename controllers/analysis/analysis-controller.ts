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
import { DEFAULT_NAMESPACE, keyOf, type Stored } from '../../src/resource/object/object.ts';
import { type AnalysisState, isCompleted, type Measured, step } from '../../src/rollout/analysis/step.ts';
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

/** Takes the measurements of AnalysisRuns, and decides how they end. */
export function analysisController(options: AnalysisOptions): ControllerOptions {
  const { clock, fetch } = options;
  const client = options.client.as({ name: ANALYSIS_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: ANALYSIS_ACTOR }),
  );

  return {
    name: 'analysis',
    sources: runSources(),
    maxConcurrentReconciles: MAX_CONCURRENT,
    namespaceShare: { most: MAX_CONCURRENT_PER_NAMESPACE, mostFailing: MAX_CONCURRENT_PER_NAMESPACE },
    maxDelayMs: 60_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const run = await client.find(analysisRunKind, key, { signal });
      if (run === undefined) {
        events.forget(key);
        return undefined;
      }
      if (run.metadata.deletionTimestamp !== undefined || isCompleted(run.status?.phase)) return undefined;
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
      const { due } = step(spec, state, [], clock.now());
      const measured = await measure(run, template, due, signal);
      const next = step(spec, state, measured, clock.now());
      await write(run, next.state, templateOf(template));
      if (next.due.length > 0) return { requeueAfter: 0, reason: 'the next measurement' };
      if (next.nextAt === undefined) return undefined;
      return { requeueAfter: next.nextAt - clock.now(), reason: 'the next measurement' };
    },
  };

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
        .map(async (metric) => ({ metric: metric.name, measurement: await takeMeasurement(metric, context) })),
    );
  }

  /** A run without a usable template has no results: those of an earlier template would be taken for those of the next one. */
  async function wait(run: Stored<AnalysisRun>, message: string): Promise<undefined> {
    events.record(run, 'Warning', 'Pending', message, 'phase');
    await write(run, { phase: 'Pending', message, metricResults: [] }, undefined);
  }

  async function write(
    run: Stored<AnalysisRun>,
    { phase = 'Pending', message = '', startedAt, completedAt, metricResults }: AnalysisState,
    template: Status['template'],
  ): Promise<void> {
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
      // Deleted meanwhile.
      if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'Conflict')) throw error;
      return;
    }
    if (!isEnded) return;
    const text = message === '' ? 'all metrics are successful' : message;
    events.record(run, phase === 'Successful' ? 'Normal' : 'Warning', phase, text, 'phase');
    events.forget(keyOf(run));
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

function templateOf({ metadata: { uid, generation = 0 } }: Stored<AnalysisTemplate>): Status['template'] {
  return { uid, generation };
}

/** The state to go on from. The results of another template say nothing about this one. */
function stateFor({ status }: AnalysisRun, { metadata }: Stored<AnalysisTemplate>): AnalysisState {
  const { template } = status ?? {};
  return template?.uid === metadata.uid && template.generation === metadata.generation ? (status ?? {}) : {};
}
