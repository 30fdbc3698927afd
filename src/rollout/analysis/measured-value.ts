import { z } from 'zod';
import { compileExpression, type ExpressionErrorDetails } from '../../expression/expression.ts';
import { Double } from '../../expression/values.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { ellipsize } from '../../foundation/text/shorten.ts';
import { BODY_VARIABLES, CONDITION_LIMITS, parseJsonPath } from '../../resource/kinds/sluice/wave/check-metrics.ts';
import type { AnalysisMetric } from '../../resource/kinds/sluice/wave/metric-schema.ts';

/** What a source returned: a value of plain JSON in which numbers are doubles, or the reason why it says nothing. */
export type MeasuredValue = { readonly value: unknown } | { readonly nothing: string };

const MAX_SAMPLES = 1000;
const MAX_DEPTH = 100;
const MAX_SHOWN_CHARACTERS = 300;

const sample = z.object({ value: z.tuple([z.number(), z.string()]).optional() });
const prometheusResponse = z.object({
  status: z.literal('success'),
  data: z.object({ resultType: z.string().max(64), result: z.unknown() }),
});

/**
 * The value in the response of the query API of Prometheus: a list of doubles for a vector, a double for a scalar. A vector without samples
 * and a sample that is no number say nothing: there was no traffic to judge. Throws InvalidInput for other responses.
 */
export function prometheusValue(body: unknown): MeasuredValue {
  const response = prometheusResponse.safeParse(body);
  if (!response.success) throw unexpected('it is no response of the query API of Prometheus');
  const { resultType, result } = response.data.data;
  if (resultType === 'scalar') {
    const scalar = z.tuple([z.number(), z.string()]).safeParse(result);
    if (!scalar.success) throw unexpected('its scalar has no value');
    const value = numberOf(scalar.data[1]);
    return Number.isNaN(value) ? { nothing: 'the result is NaN' } : { value: new Double(value) };
  }
  if (resultType !== 'vector')
    throw unexpected(
      `its result is a ${resultType.replace(/[^a-z]/gi, '')}; write a query whose result is a vector or a scalar`,
    );
  const samples = z.array(sample).safeParse(result);
  if (!samples.success) throw unexpected('its vector has other entries than samples');
  if (samples.data.length > MAX_SAMPLES)
    throw new SluiceError(
      'LimitExceeded',
      `the result has ${samples.data.length} samples, at most ${MAX_SAMPLES}; aggregate them, such as with sum()`,
    );
  if (samples.data.length === 0) return { nothing: 'the result is empty' };
  const values = samples.data.map(({ value }) => {
    if (value === undefined)
      throw unexpected('a sample is a histogram; write a query for a number, such as with histogram_quantile()');
    return numberOf(value[1]);
  });
  if (values.some((value) => Number.isNaN(value))) return { nothing: 'the result is NaN' };
  return { value: values.map((value) => new Double(value)) };
}

/**
 * The value of a metric in a response of JSON. A value that is empty, null or NaN says nothing, also if only a part of it is: which parts the
 * conditions judge is not known. Throws InvalidInput if its expression fails.
 */
export function jsonValue(http: NonNullable<AnalysisMetric['provider']['http']>, body: unknown): MeasuredValue {
  const { jsonPath, value: expression } = http;
  const steps = parseJsonPath(jsonPath ?? '');
  if (steps === undefined) throw new SluiceError('InvalidInput', `${JSON.stringify(jsonPath)} is no JSONPath`);
  try {
    const value = doubles(
      expression === undefined
        ? selected(body, steps)
        : compileExpression(expression, BODY_VARIABLES, CONDITION_LIMITS).evaluate({ body: doubles(body) }),
    );
    const nothing = nothingIn(value, []);
    return nothing === undefined ? { value } : { nothing };
  } catch (error) {
    if (isNaNError(error)) return { nothing: error.message };
    throw error;
  }
}

/** True for the error of an expression in which an operation gave NaN. */
export function isNaNError(error: unknown): error is SluiceError {
  return (
    isSluiceError(error, 'InvalidInput') &&
    (error.details as Partial<ExpressionErrorDetails> | undefined)?.isNaN === true
  );
}

/** What is missing in a value as `doubles` returns it, which bounds its depth; undefined for a value to judge. */
function nothingIn(value: unknown, path: readonly string[]): string | undefined {
  const problem = (what: string) =>
    path.length === 0
      ? `the result is ${what}`
      : `result${path.join('')} is ${what}; select only what the conditions judge, with jsonPath or value`;
  if (value === undefined || value === null) return path.length === 0 ? 'the response has no value' : problem('null');
  if (value instanceof Double) return Number.isNaN(value.value) ? problem('NaN') : undefined;
  if (typeof value === 'string') {
    // As Prometheus writes it into JSON. An infinity is a number that conditions judge, as in Argo Rollouts.
    if (value === 'NaN') return problem('NaN');
    return value.trim() === '' ? problem('empty') : undefined;
  }
  if (typeof value !== 'object') return undefined;
  const entries = Object.entries(value);
  if (entries.length === 0) return problem('empty');
  for (const [key, inner] of entries) {
    const found = nothingIn(inner, [...path, Array.isArray(value) ? `[${key}]` : stepText(key)]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function stepText(key: string): string {
  return /^[A-Za-z_]\w{0,50}$/.test(key) ? `.${key}` : `[${JSON.stringify(key.slice(0, 50))}]`;
}

/** The number of samples that a response names. Throws InvalidInput for anything but a number. */
export function sampleCount(found: MeasuredValue): number {
  if ('nothing' in found) return 0;
  const values = Array.isArray(found.value) ? found.value : [found.value];
  return values.reduce((sum: number, one: unknown) => {
    const number = one instanceof Double ? one.value : Number.NaN;
    if (Number.isNaN(number)) throw new SluiceError('InvalidInput', 'the number of samples is no number');
    return sum + number;
  }, 0);
}

/** A value for the status of a run: short, on one line, without control characters. */
export function showMeasured(value: unknown): string {
  const text = JSON.stringify(value, (_key, inner: unknown) =>
    inner instanceof Double ? (Number.isFinite(inner.value) ? inner.value : String(inner.value)) : inner,
  );
  return ellipsize(text, MAX_SHOWN_CHARACTERS);
}

/** The same value with numbers that stay doubles in expressions. */
function doubles(value: unknown, depth = 0): unknown {
  if (typeof value === 'number') return new Double(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH) throw unexpected(`it is nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(value)) return value.map((inner) => doubles(inner, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, doubles(inner, depth + 1)]));
}

/** With `*` a list of all that matches; undefined if nothing does. */
function selected(body: unknown, steps: readonly (string | number)[]): unknown {
  let found: unknown[] = [body];
  for (const next of steps) {
    found = found.flatMap((value): unknown[] => {
      if (typeof value !== 'object' || value === null) return [];
      if (next === '*') return Object.values(value);
      // The length of a list is no entry of it.
      if (Array.isArray(value) && typeof next !== 'number') return [];
      return Object.hasOwn(value, next) ? [(value as Readonly<Record<string | number, unknown>>)[next]] : [];
    });
  }
  return steps.includes('*') ? found : found[0];
}

/** The texts of Prometheus for numbers. */
function numberOf(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (text === '-Inf') return Number.NEGATIVE_INFINITY;
  if (text === 'NaN') return Number.NaN;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isNaN(value)) throw unexpected('a sample is no number');
  return value;
}

function unexpected(why: string): SluiceError {
  return new SluiceError('InvalidInput', `the response cannot be used: ${why}`);
}
