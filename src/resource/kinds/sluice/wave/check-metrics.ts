import { compileExpression, type ExpressionLimits } from '../../../../expression/expression.ts';
import { Double } from '../../../../expression/values.ts';
import { isSluiceError } from '../../../../foundation/sluice-error.ts';
import { type FieldCause, invalidValue, requiredValue } from '../../../object/invalid-object.ts';
import { placeholdersIn } from './analysis-placeholders.ts';
import type { AnalysisMetric } from './metric-schema.ts';

/** A measurement evaluates few expressions over one response. */
export const CONDITION_LIMITS: Partial<ExpressionLimits> = { rounds: 50_000, values: 50_000, milliseconds: 100 };
/** The variable of expressions over the response of an HTTP request. */
export const BODY_VARIABLES = ['body'] as const;

const MAX_JSON_PATH_STEPS = 50;

type Path = readonly (string | number)[];

/** The variables of the conditions of a metric. */
export function conditionVariables({ compareWithUntouched }: AnalysisMetric): readonly string[] {
  return compareWithUntouched === true ? ['result', 'canary', 'baseline'] : ['result', 'canary'];
}

/** The texts of a metric that placeholders are replaced in, with their fields below the metric. */
function queryTexts({ provider: { prometheus, http } }: AnalysisMetric): [text: string, path: (string | number)[]][] {
  const found: [text: string | undefined, path: (string | number)[]][] = [
    [prometheus?.query, ['prometheus', 'query']],
    [prometheus?.samplesQuery, ['prometheus', 'samplesQuery']],
    [http?.body, ['http', 'body']],
    ...(http?.parameters ?? []).map(({ value }, index): [string, (string | number)[]] => [
      value,
      ['http', 'parameters', index, 'value'],
    ]),
  ];
  return found.flatMap(([text, path]) => (text === undefined ? [] : [[text, ['provider', ...path]]]));
}

/** True if the requests of a metric name the targets of a rollout. */
export function usesTargets(metric: AnalysisMetric): boolean {
  return placeholdersIn(queryTexts(metric).map(([text]) => text)).usesTargets;
}

/** The arguments that the requests of a metric use. */
export function usedArgs(metric: AnalysisMetric): ReadonlySet<string> {
  return placeholdersIn(queryTexts(metric).map(([text]) => text)).args;
}

/** The steps of a JSONPath: fields, indexes, and `*` for all entries. Undefined for a text that is none, or that uses filters. */
export function parseJsonPath(text: string): (string | number)[] | undefined {
  const inner = /^\{(.*)\}$/s.exec(text)?.[1] ?? text;
  const path = inner.trim().replace(/^\$/, '');
  const steps: (string | number)[] = [];
  const step = /\.([A-Za-z_][\w-]*|\*)|\[(\d{1,9})\]|\[(\*)\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]/y;
  while (step.lastIndex < path.length) {
    const found = step.exec(path);
    if (found === null || steps.length === MAX_JSON_PATH_STEPS) return undefined;
    const [, field, index, all, single, double] = found;
    steps.push(index === undefined ? (field ?? all ?? single ?? double ?? '') : Number(index));
  }
  return steps;
}

/** The errors of metrics that their schema does not find: placeholders, and expressions with line and column. */
export function metricCauses(
  metrics: readonly AnalysisMetric[],
  args: readonly { readonly name: string }[] | undefined,
): FieldCause[] {
  const names = new Set((args ?? []).map(({ name }) => name));
  return metrics.flatMap((metric, index) => {
    const at = (path: Path): Path => ['spec', 'metrics', index, ...path];
    return [...placeholderCauses(metric, names, at), ...providerCauses(metric, at), ...expressionCauses(metric, at)];
  });
}

function placeholderCauses(metric: AnalysisMetric, args: ReadonlySet<string>, at: (path: Path) => Path): FieldCause[] {
  const causes = queryTexts(metric).flatMap(([text, path]) => {
    const { args: used, unknown } = placeholdersIn([text]);
    const missing = [...used].filter((name) => !args.has(name));
    const rules = [
      ...(missing.length > 0 ? [`spec.args has no argument ${missing.join(', ')}`] : []),
      ...(unknown.length > 0 ? [`${unknown[0]} is no placeholder; known are {{args.<name>}} and {{targets}}`] : []),
    ];
    return rules.map((rule) => invalidValue(at(path), text, rule));
  });
  if (metric.compareWithUntouched !== true || usesTargets(metric)) return causes;
  const rule = 'requires {{targets}} in the query, to measure both groups of targets';
  return [...causes, invalidValue(at(['compareWithUntouched']), true, rule)];
}

function providerCauses({ minSamples, provider: { prometheus, http } }: AnalysisMetric, at: (path: Path) => Path) {
  const causes: FieldCause[] = [];
  if (minSamples !== undefined && prometheus?.samplesQuery === undefined && http?.samples === undefined) {
    const missing = prometheus === undefined ? ['http', 'samples'] : ['prometheus', 'samplesQuery'];
    causes.push(requiredValue(at(['provider', ...missing])));
  }
  if (http?.jsonPath !== undefined && parseJsonPath(http.jsonPath) === undefined) {
    const rule = 'must be a JSONPath of fields, indexes and [*], such as {$.data[0].errors}';
    causes.push(invalidValue(at(['provider', 'http', 'jsonPath']), http.jsonPath, rule));
  }
  return causes;
}

function expressionCauses(metric: AnalysisMetric, at: (path: Path) => Path): FieldCause[] {
  const { prometheus, http } = metric.provider;
  const variables = conditionVariables(metric);
  const values = prometheus === undefined ? JSON_VALUES : PROMETHEUS_VALUES;
  const expressions: readonly [
    path: Path,
    text: string | undefined,
    problemOf: (text: string) => string | undefined,
  ][] = [
    [['successCondition'], metric.successCondition, (text) => expressionProblem(text, variables, values, true)],
    [['failureCondition'], metric.failureCondition, (text) => expressionProblem(text, variables, values, true)],
    [['provider', 'http', 'value'], http?.value, (text) => expressionProblem(text, BODY_VARIABLES, JSON_VALUES, false)],
    [
      ['provider', 'http', 'samples'],
      http?.samples,
      (text) => expressionProblem(text, BODY_VARIABLES, JSON_VALUES, false),
    ],
  ];
  return expressions.flatMap(([path, text, problemOf]) => {
    const problem = text === undefined ? undefined : problemOf(text);
    return problem === undefined ? [] : [invalidValue(at(path), text, problem)];
  });
}

/** What depends on the types alone, as the evaluator reports it. */
const TYPE_ERROR = /no matching overload|unbound function|expected true or false|type mismatch/;
/** Lists of numbers have no fields, and a number has no entries either. */
const LIST_ERROR = new RegExp(`${TYPE_ERROR.source}|field not found`);
const NUMBER_ERROR = new RegExp(`${LIST_ERROR.source}|out of bounds`);

/** A value of a type that a source can return, and the errors that all values of this type have. */
type Sample = readonly [value: unknown, typeError: RegExp];

const NUMBER = new Double(0.5);
const PROMETHEUS_VALUES: readonly Sample[] = [
  [Array(100).fill(NUMBER), LIST_ERROR],
  [NUMBER, NUMBER_ERROR],
];
const JSON_VALUES: readonly Sample[] = [[NUMBER], NUMBER, 'a', true, {}, [{}], ['a']].map((value) => [
  value,
  TYPE_ERROR,
]);

/**
 * Compiles an expression, and evaluates it for values of each type that the source can return: an expression that has a type error for all
 * of them can never be evaluated. Errors that depend on a value, such as a missing field, are none.
 */
function expressionProblem(
  text: string,
  variables: readonly string[],
  values: readonly Sample[],
  isCondition: boolean,
): string | undefined {
  try {
    const compiled = compileExpression(text, variables, CONDITION_LIMITS);
    let first: string | undefined;
    for (const [value, typeError] of values) {
      const bindings = Object.fromEntries(variables.map((name) => [name, value]));
      try {
        if (isCondition) compiled.test(bindings);
        else compiled.evaluate(bindings);
        return undefined;
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        if (!typeError.test(error.message)) return undefined;
        first ??= error.message;
      }
    }
    return `${first}; measured numbers are of type double: write 2.0 instead of 2 in arithmetic`;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return error.message;
  }
}
