import type { Typing } from '../../../expression/check-types.ts';
import { compileTyped, type Expression, type ExpressionLimits } from '../../../expression/expression.ts';
import { mapOf, objectOf, scalar } from '../../../expression/static-type.ts';
import { isSluiceError, messageOf } from '../../../foundation/sluice-error.ts';
import { cpuMilliseconds } from '../../../foundation/time/cpu-time.ts';
import { type FieldCause, invalidValue } from '../../object/invalid-object.ts';

/** The variables of expressions in a template. */
export const TEMPLATE_VARIABLES = ['repoDefault', 'packageDefault', 'upstream', 'repository', 'target'] as const;
/** Those of `repoExpr`, whose result decides which repository it is. */
export const REPOSITORY_VARIABLES = TEMPLATE_VARIABLES.filter((name) => name !== 'repository');
/**
 * A set evaluates its expressions for each target. The time is many times what the other limits permit on an idle machine: it must not
 * decide on a loaded one.
 */
export const TEMPLATE_LIMITS: Partial<ExpressionLimits> = {
  rounds: 1000,
  values: 5000,
  size: 50_000,
  text: 20_000,
  milliseconds: 100,
};

/** Their keys are no fields. */
const USER_MAPS: ReadonlySet<string> = new Set(['labels', 'annotations', 'data', 'configMap', 'matchLabels']);
/** Of all expressions together: compiling them blocks other requests, for some microseconds a character. */
const MAX_ALL_CHARACTERS = 32 * 1024;
/** Milliseconds of processor time to compile all expressions and to evaluate them for the example. Usual ones need less than one each. */
const MAX_EXAMPLE_MS = 500;
/** Errors of an evaluation that other values of the variables do not avoid, where types leave it open. */
const TYPE_ERROR = /found no matching overload|type mismatch|error parsing regexp/;

const TEXT = scalar('string');
const TEXTS = mapOf(TEXT, TEXT);
const OBJECT = objectOf({ name: TEXT, namespace: TEXT, labels: TEXTS, annotations: TEXTS });
/** A repository that a set names has no object. */
const NAMED = objectOf({ repo: TEXT, package: TEXT });

/** The errors of the expressions of a set, each with its field, line and column. */
export function expressionCauses(targets: unknown): FieldCause[] {
  const found = [...expressionsIn(targets, ['spec', 'targets'])];
  const characters = found.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > MAX_ALL_CHARACTERS)
    return [
      invalidValue(
        ['spec', 'targets'],
        `${characters} characters`,
        `expressions may have at most ${MAX_ALL_CHARACTERS} characters together`,
      ),
    ];
  const causes: FieldCause[] = [];
  let spent = 0;
  for (const { text, path } of found) {
    const variables = path.at(-1) === 'repoExpr' ? REPOSITORY_VARIABLES : TEMPLATE_VARIABLES;
    const [, , index] = path;
    const isNamed = Array.isArray(targets) && targets[Number(index)]?.repositories !== undefined;
    const start = cpuMilliseconds();
    const problem = problemOf(text, variables, isNamed);
    spent += cpuMilliseconds() - start;
    if (problem !== undefined) causes.push(invalidValue(path, text, problem));
    if (spent > MAX_EXAMPLE_MS)
      return [...causes, invalidValue(path, text, `expressions may cost at most ${MAX_EXAMPLE_MS} ms together`)];
  }
  return causes;
}

function typingOf(variables: readonly string[], isNamed: boolean): Typing {
  const target = isNamed ? NAMED : OBJECT;
  const types = { repoDefault: TEXT, packageDefault: TEXT, upstream: OBJECT, repository: OBJECT, target };
  return {
    variables: Object.fromEntries(Object.entries(types).filter(([name]) => variables.includes(name))),
    result: 'string',
  };
}

/** Why an expression cannot be compiled, has wrong types in any branch, or costs too much for an example of the variables. */
function problemOf(text: string, variables: readonly string[], isNamed: boolean): string | undefined {
  let expression: Expression;
  try {
    expression = compileTyped(text, typingOf(variables, isNamed), TEMPLATE_LIMITS);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return error.message;
  }
  const words = text.match(/[\w./-]+|\w+/g)?.flatMap((word) => [word, ...word.split('.')]) ?? [];
  let value: unknown;
  try {
    value = expression.evaluate(exampleOf(words, isNamed));
  } catch (error) {
    const message = messageOf(error);
    // The maps of the example have all keys that the text contains; another one is computed, and may exist.
    return isSluiceError(error, 'LimitExceeded') || TYPE_ERROR.test(message) ? message : undefined;
  }
  return typeof value === 'string' ? undefined : notText(text, value);
}

/** Values of all variables. A repository that a set names has no object. */
function exampleOf(words: readonly string[], isNamed: boolean): Readonly<Record<string, unknown>> {
  const map = Object.fromEntries(words.map((word) => [word, 'example']));
  const object = { name: 'example', namespace: 'default', labels: map, annotations: map };
  const target = isNamed ? { repo: 'example', package: 'example' } : object;
  return { repoDefault: 'example', packageDefault: 'example', upstream: object, repository: object, target };
}

/** The message for a value of another type. */
export function notText(text: string, value: unknown): string {
  const type = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  return `expression ${JSON.stringify(text)} gives ${type}, expected a text`;
}

/** The fields whose names end with Expr, and those of the list removeKeyExprs; maps of users are below other names. */
function* expressionsIn(
  value: unknown,
  path: readonly (string | number)[],
): Generator<{ readonly text: string; readonly path: readonly (string | number)[] }> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const deeper = [...path, Array.isArray(value) ? Number(key) : key];
    if (typeof inner === 'string') {
      if (/Expr$/.test(key) || path.at(-1) === 'removeKeyExprs') yield { text: inner, path: deeper };
    } else if (!USER_MAPS.has(key)) yield* expressionsIn(inner, deeper);
  }
}
