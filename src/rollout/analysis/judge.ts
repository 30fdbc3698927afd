import { compileExpression } from '../../expression/expression.ts';
import type { MeasurementResult } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { CONDITION_LIMITS, conditionVariables } from '../../resource/kinds/sluice/wave/check-metrics.ts';
import type { AnalysisMetric } from '../../resource/kinds/sluice/wave/metric-schema.ts';
import { isNaNError, type MeasuredValue, showMeasured } from './measured-value.ts';

/** What was measured for one group of targets. */
export interface GroupMeasurement {
  readonly found: MeasuredValue;
  /** Undefined for a metric without minSamples. */
  readonly samples: number | undefined;
}

/** `baseline` is what the targets show that the rollout has not changed; undefined for a metric that does not compare. */
export interface Groups {
  readonly canary: GroupMeasurement;
  readonly baseline: GroupMeasurement | undefined;
}

export type Judgement = Pick<MeasurementResult, 'phase' | 'value' | 'message'>;

/**
 * The outcome of a measurement, by the rules of Argo Rollouts: without conditions it is successful; with one of the two, the other is its
 * opposite; with both, it is inconclusive if neither is true. What Argo Rollouts leaves to the conditions is inconclusive too: an empty
 * result, NaN, also in the arithmetic of a condition, and fewer than `minSamples` samples. Throws the errors of expressions, which make a
 * measurement an Error.
 */
export function judge(metric: AnalysisMetric, { canary, baseline }: Groups): Judgement {
  const groups = [
    { name: 'canary', measured: canary },
    ...(baseline === undefined ? [] : [{ name: 'baseline', measured: baseline }]),
  ];
  const values: { canary?: unknown; baseline?: unknown } = {};
  for (const { name, measured } of groups) {
    const where = baseline === undefined ? '' : `${name}: `;
    if ('nothing' in measured.found) return { phase: 'Inconclusive', message: `${where}${measured.found.nothing}` };
    Object.assign(values, { [name]: measured.found.value });
    const { minSamples = 0 } = metric;
    if (measured.samples !== undefined && measured.samples < minSamples)
      return {
        phase: 'Inconclusive',
        value: showMeasured(measured.found.value),
        message: `${where}${measured.samples} samples, at least ${minSamples} are required`,
      };
  }
  const value = showMeasured(baseline === undefined ? values.canary : values);
  const bindings = { ...values, result: values.canary };
  const variables = conditionVariables(metric);
  let nan: string | undefined;
  const test = (text: string | undefined): boolean | undefined => {
    try {
      return text === undefined ? undefined : compileExpression(text, variables, CONDITION_LIMITS).test(bindings);
    } catch (error) {
      if (!isNaNError(error)) throw error;
      nan = error.message;
      return undefined;
    }
  };
  const { successCondition, failureCondition } = metric;
  const isSuccess = test(successCondition);
  const isFailure = test(failureCondition);
  if (isFailure === true) return { phase: 'Failed', value, message: `${value} (${failureCondition})` };
  if (nan !== undefined) return { phase: 'Inconclusive', value, message: `${value}: ${nan}` };
  if (isFailure === undefined && isSuccess === false)
    return { phase: 'Failed', value, message: `${value} (not ${successCondition})` };
  if (isSuccess === false)
    return { phase: 'Inconclusive', value, message: `${value} is neither a success nor a failure` };
  return { phase: 'Successful', value };
}
