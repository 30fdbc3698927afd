import { compileTyped, type ExpressionLimits } from '../../../../expression/expression.ts';
import { DYN, type StaticType, scalar } from '../../../../expression/static-type.ts';
import { Double } from '../../../../expression/values.ts';
import { isSluiceError } from '../../../../foundation/sluice-error.ts';
import { type FieldCause, invalidValue, requiredValue } from '../../../object/invalid-object.ts';
import { placeholdersIn } from './analysis-placeholders.ts';
import type { AnalysisMetric } from './metric-schema.ts';

/** A measurement evaluates few expressions over one response, and no condition can judge NaN. */
export const CONDITION_LIMITS: Partial<ExpressionLimits> = {
  ...{ rounds: 50_000, values: 50_000, milliseconds: 100 },
  refusesNaN: true,
};
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
  const source = prometheus === undefined ? JSON_SOURCE : PROMETHEUS_SOURCE;
  const condition = { variables: conditionVariables(metric), source, isCondition: true };
  const value = { variables: BODY_VARIABLES, source: JSON_SOURCE, isCondition: false };
  const expressions: readonly [path: Path, text: string | undefined, use: Use][] = [
    [['successCondition'], metric.successCondition, condition],
    [['failureCondition'], metric.failureCondition, condition],
    [['provider', 'http', 'value'], http?.value, value],
    [['provider', 'http', 'samples'], http?.samples, value],
  ];
  return expressions.flatMap(([path, text, use]) => {
    const problem = text === undefined ? undefined : expressionProblem(text, use);
    return problem === undefined ? [] : [invalidValue(at(path), text, problem)];
  });
}

/** What a source can return: its type, and a value of each alternative. */
interface Source {
  readonly type: StaticType;
  readonly samples: readonly unknown[];
}

interface Use {
  readonly variables: readonly string[];
  readonly source: Source;
  readonly isCondition: boolean;
}

const NUMBER = new Double(0.5);
const PROMETHEUS_SOURCE: Source = {
  type: { scalars: ['double'], list: scalar('double') },
  samples: [Array(100).fill(NUMBER), NUMBER],
};
/** Levels of JSON whose types are known; deeper ones may have any. */
const MAX_JSON_LEVELS = 3;
const JSON_SOURCE: Source = {
  type: jsonType(MAX_JSON_LEVELS),
  samples: [[NUMBER], NUMBER, 'a', true, {}, [{}], ['a']],
};

function jsonType(levels: number): StaticType {
  if (levels === 0) return DYN;
  const inner = jsonType(levels - 1);
  return {
    scalars: ['double', 'string', 'bool', 'null_type'],
    list: inner,
    map: { key: scalar('string'), value: inner },
  };
}

/** What depends on the types alone, as the evaluator reports it. */
const TYPE_ERROR = /no matching overload|expected true or false|type mismatch/;

/**
 * Compiles an expression with the types that the source can return, and evaluates it for a value of each: an expression that has a type error
 * for all of them can never be evaluated. Errors that depend on a value, such as a missing field, are none.
 */
function expressionProblem(text: string, { variables, source, isCondition }: Use): string | undefined {
  const bindingsOf = (value: unknown) => Object.fromEntries(variables.map((name) => [name, value]));
  const typing = {
    variables: Object.fromEntries(variables.map((name) => [name, source.type])),
    ...(isCondition ? { result: 'bool' as const } : {}),
  };
  let first: string | undefined;
  try {
    const compiled = compileTyped(text, typing, CONDITION_LIMITS);
    for (const value of source.samples) {
      try {
        if (isCondition) compiled.test(bindingsOf(value));
        else compiled.evaluate(bindingsOf(value));
        return undefined;
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        if (!TYPE_ERROR.test(error.message)) return undefined;
        first ??= error.message;
      }
    }
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    first = error.message;
  }
  return first === undefined || !/no matching overload/.test(first)
    ? first
    : `${first}; measured numbers are of type double: write 2.0 instead of 2 in arithmetic`;
}
