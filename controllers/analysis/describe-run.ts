import type { AnalysisRun, MetricResult } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import type { ObjectExplanation } from '../package-variant/describe-variant.ts';

/** What a run measures, and how each of its metrics stands. */
export function describeRun({ metadata, spec, status }: AnalysisRun): ObjectExplanation {
  const { plan, wave } = spec.scope ?? {};
  const { phase, message = '', startedAt, metricResults = [] } = status ?? {};
  return {
    subject: `AnalysisRun ${metadata.name}`,
    state: phase ?? 'not carried out yet',
    reasons: [
      `it measures the metrics of AnalysisTemplate ${spec.templateRef.name}${wave === undefined ? '' : ` for wave ${wave} of WavePlan ${plan}`}`,
      ...(phase === undefined
        ? ['no controller has carried it out yet: is "sluice up" running, and the controller analysis not disabled?']
        : [
            `it is ${phase}${startedAt === undefined || startedAt === null ? '' : `, since ${startedAt}`}${message === '' ? '' : `: ${message}`}`,
          ]),
      ...metricResults.map(metricText),
    ],
    next: plan === undefined ? [] : [`waveplan/${plan}`],
  };
}

function metricText({
  name,
  phase,
  message = '',
  successful,
  failed,
  inconclusive,
  error,
  measurements,
}: MetricResult) {
  const last = measurements.at(-1)?.value;
  const counts = `${successful} successful, ${failed} failed, ${inconclusive} inconclusive, ${error} errors`;
  return `metric ${name} is ${phase} (${counts}${last === undefined ? '' : `, last value ${last}`})${message === '' ? '' : `: ${message}`}`;
}
