import { celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { LruCache } from '../foundation/lru-cache.ts';
import { messageOf, SluiceError } from '../foundation/sluice-error.ts';
import { type Ast, inspect, meterTree } from './ast.ts';
import { checkTypes, type Typing } from './check-types.ts';
import { doubleFunctions, NAN_PROBLEM } from './double-functions.ts';
import { Meter } from './meter.ts';
import { fromCel, toCel } from './values.ts';

/**
 * The bounds on the cost of an untrusted expression. CEL has no endless loops and its regular expressions are linear
 * (RE2), so what can grow is the text, its tree, loops inside of loops over large inputs, and values that contain others more than once.
 */
export interface ExpressionLimits {
  /** Characters of the text. Default 4096. */
  readonly length: number;
  /** Nodes of the tree after macros are expanded. Default 2000. */
  readonly nodes: number;
  /** Levels of the tree. Default 100. */
  readonly depth: number;
  /** Values in the bindings of one evaluation, inner ones included. Default 200,000. */
  readonly values: number;
  /** Parts of each list and map that is made, inner ones included; ten characters count as one. Default 200,000. */
  readonly size: number;
  /** Characters of each text, and bytes, that is made. Default 100,000. */
  readonly text: number;
  /** Rounds of all loops of one evaluation together. Default 100,000. */
  readonly rounds: number;
  /** Milliseconds of processor time of one evaluation, checked in loops and after what may be expensive: comparing large values costs more than the count of rounds shows. Default 1000. */
  readonly milliseconds: number;
  /** If true, an operation that gives NaN, such as 0.0 / 0.0, is an error: comparisons with NaN are false, whatever they are meant to show. Default false, as in CEL. */
  readonly refusesNaN: boolean;
}

const DEFAULT_LIMITS: ExpressionLimits = {
  length: 4096,
  nodes: 2000,
  depth: 100,
  values: 200_000,
  size: 200_000,
  text: 100_000,
  rounds: 100_000,
  milliseconds: 1000,
  refusesNaN: false,
};

/** Position in the text; line and column from 1, offset from 0. */
export interface ExpressionPosition {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
}

export interface ExpressionErrorDetails {
  readonly expression: string;
  readonly position: ExpressionPosition | undefined;
  /** True if an operation gave NaN and the limits refuse that. */
  readonly isNaN?: boolean;
}

/** A CEL expression, ready to be evaluated any number of times. */
export interface Expression {
  readonly text: string;
  readonly variables: readonly string[];
  /**
   * The value for these bindings: its variables and its result are plain JavaScript values. Whole numbers count as CEL ints and are returned as
   * numbers (as bigint beyond 2^53), other numbers as doubles; times and durations are returned as text. A variable that is
   * not bound, a missing field, wrong types are InvalidInput, an expression that costs too much is LimitExceeded; both
   * with ExpressionErrorDetails.
   */
  evaluate(bindings: Readonly<Record<string, unknown>>): unknown;
  /** `evaluate` for a condition: a value that is no boolean is InvalidInput. */
  test(bindings: Readonly<Record<string, unknown>>): boolean;
}

/** A set of expressions that is in use is far smaller. */
const MAX_CACHED = 2000;
const cache = new LruCache<string, Expression>({ maxEntries: MAX_CACHED });

/**
 * Compiles a CEL expression that may use the given variables. Compiled expressions are cached, so compiling the same text again with
 * the same limits costs nothing; the first time takes some five microseconds a character. Throws InvalidInput with
 * ExpressionErrorDetails for syntax errors and unknown variables, LimitExceeded for a text beyond the limits.
 */
export function compileExpression(
  text: string,
  variables: readonly string[],
  limits?: Partial<ExpressionLimits>,
): Expression {
  return cached(text, variables, limits);
}

/**
 * `compileExpression` for variables with types: wrong types, unknown fields and unknown functions are InvalidInput too, in all branches and with
 * their positions, and so is a result of another type.
 */
export function compileTyped(text: string, typing: Typing, limits?: Partial<ExpressionLimits>): Expression {
  return cached(text, Object.keys(typing.variables), limits, typing);
}

function cached(
  text: string,
  variables: readonly string[],
  limits: Partial<ExpressionLimits> | undefined,
  typing?: Typing,
): Expression {
  const key = JSON.stringify([text, variables, limits, typing]);
  const found = cache.get(key);
  if (found !== undefined) return found;
  const expression = compile(text, variables, { ...DEFAULT_LIMITS, ...limits }, typing);
  cache.set(key, expression);
  return expression;
}

function compile(
  text: string,
  variables: readonly string[],
  limits: ExpressionLimits,
  typing: Typing | undefined,
): Expression {
  if (text.length > limits.length)
    throw new SluiceError('LimitExceeded', `expression has ${text.length} characters, at most ${limits.length}`);
  const { ast, positions } = parseText(text);
  // One evaluation runs to its end before the next begins, so the meter is never shared.
  const meter = new Meter(limits);
  const environment = celEnv({
    funcs: [...meter.functions, ...doubleFunctions(limits.refusesNaN)],
    re2: meter.re2,
  });
  const problem =
    inspect(ast, variables, limits) ?? (typing === undefined ? undefined : checkTypes(ast, environment.funcs, typing));
  if (problem !== undefined) {
    const position = positionAt(text, positions[problem.id]);
    throw failure(problem.kind === 'limit' ? 'LimitExceeded' : 'InvalidInput', text, problem.message, position);
  }
  const run = guard(text, () => plan(environment, meterTree(ast)));

  function evaluate(bindings: Readonly<Record<string, unknown>>): unknown {
    meter.start();
    const missing = variables.find((name) => !Object.hasOwn(bindings, name) || bindings[name] === undefined);
    if (missing !== undefined) throw failure('InvalidInput', text, `variable ${missing} has no value`);
    const result = guard(text, () => {
      const input = Object.fromEntries(variables.map((name) => [name, bindings[name]]));
      return run(toCel(input, limits.values) as never);
    });
    const { problem } = meter;
    if (isCelError(result)) {
      const { exprId, message } = result;
      const isLimit = problem !== undefined && message.includes(problem);
      if (problem === undefined || isLimit)
        throw failure(
          isLimit ? 'LimitExceeded' : 'InvalidInput',
          text,
          message,
          positionAt(text, positions[String(exprId)]),
          result,
        );
    }
    if (problem !== undefined) throw failure('LimitExceeded', text, problem);
    return guard(text, () => fromCel(result));
  }

  return {
    text,
    variables: Object.freeze([...variables]),
    evaluate,
    test(bindings) {
      const value = evaluate(bindings);
      if (typeof value === 'boolean') return value;
      throw failure('InvalidInput', text, `gives ${value === null ? 'null' : typeof value}, expected true or false`);
    },
  };
}

function parseText(text: string): { ast: Ast; positions: Readonly<Record<string, number>> } {
  const { expr, sourceInfo } = guard(text, () => parse(text));
  return { ast: expr, positions: sourceInfo?.positions ?? {} };
}

/**
 * Converts errors of the library to SluiceError. Parser and evaluator recurse for each level of nesting, so a stack
 * overflow means that the expression is too large.
 */
function guard<T>(text: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    if (error instanceof RangeError) throw failure('LimitExceeded', text, 'is nested too deeply', undefined, error);
    const { rawMessage, location } = error as { rawMessage?: string; location?: { start: { offset: number } } };
    throw failure(
      'InvalidInput',
      text,
      rawMessage ?? messageOf(error),
      positionAt(text, location?.start.offset),
      error,
    );
  }
}

function positionAt(text: string, offset: number | undefined): ExpressionPosition | undefined {
  if (offset === undefined) return undefined;
  const before = text.slice(0, offset).split('\n');
  return { offset, line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

function failure(
  code: 'InvalidInput' | 'LimitExceeded',
  text: string,
  problem: string,
  position?: ExpressionPosition,
  cause?: unknown,
): SluiceError<ExpressionErrorDetails> {
  const shown = text.length > 100 ? `${text.slice(0, 100)}…` : text;
  const where = position === undefined ? '' : `, line ${position.line}, column ${position.column}`;
  return new SluiceError(code, `expression ${JSON.stringify(shown)}${where}: ${problem}`, {
    details: { expression: text, position, ...(problem === NAN_PROBLEM ? { isNaN: true } : {}) },
    ...(cause === undefined ? {} : { cause }),
  });
}
