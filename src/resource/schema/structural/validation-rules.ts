import { compileExpression, type Expression, type ExpressionLimits } from '../../../expression/expression.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { ValidationRule } from './structural-schema.ts';

/** Rules run on the event loop, where they block all other requests. */
export const RULE_LIMITS: Partial<ExpressionLimits> = { rounds: 15_000, values: 50_000, milliseconds: 50 };

/** Rules of one schema, and the characters of all of them. */
export const MAX_RULES = 1000;
export const MAX_RULE_CHARACTERS = 64 * 1024;

/** True for a rule that uses the previous state; it is evaluated only when an object changes. */
export function isTransitionRule(rule: ValidationRule): boolean {
  return /\boldSelf\b/.test(rule.rule);
}

const compiled = new WeakMap<ValidationRule, Expression>();

/** The expression of a rule. Throws InvalidInput or LimitExceeded for what is no expression. */
export function ruleExpression(rule: ValidationRule): Expression {
  const found = compiled.get(rule);
  if (found !== undefined) return found;
  const expression = compileExpression(rule.rule, isTransitionRule(rule) ? ['self', 'oldSelf'] : ['self'], RULE_LIMITS);
  compiled.set(rule, expression);
  return expression;
}

/** Returns why a rule of a schema cannot be used; undefined if it can. */
export function ruleProblem(rule: ValidationRule): string | undefined {
  if (typeof rule.rule !== 'string' || rule.rule.trim() === '') return 'must be a CEL expression';
  if (rule.message !== undefined && typeof rule.message !== 'string') return 'message must be a text';
  try {
    ruleExpression(rule);
    if (rule.messageExpression !== undefined) compileExpression(rule.messageExpression, ['self'], RULE_LIMITS);
    return undefined;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return error.message;
  }
}

/**
 * Compiles all rules in a value, one after each `yield`, so that a later validation finds them in the cache. Compiling those of a
 * large definition takes hundreds of milliseconds.
 */
export function* compileRules(value: unknown): Generator<void, void> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name !== 'x-kubernetes-validations' || !Array.isArray(inner)) {
      yield* compileRules(inner);
      continue;
    }
    for (const rule of inner.slice(0, MAX_RULES)) {
      if (typeof rule === 'object' && rule !== null) ruleProblem(rule as ValidationRule);
      yield;
    }
  }
}
