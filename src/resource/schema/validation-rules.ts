import { compileExpression, type Expression } from '../../expression/expression.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { ValidationRule } from './structural-schema.ts';

/** A rule that names the state before is judged only when an object changes. */
export function isTransitionRule(rule: ValidationRule): boolean {
  return /\boldSelf\b/.test(rule.rule);
}

const compiled = new WeakMap<ValidationRule, Expression>();

/** The expression of a rule. Throws InvalidInput or LimitExceeded for what is no expression. */
export function ruleExpression(rule: ValidationRule): Expression {
  const found = compiled.get(rule);
  if (found !== undefined) return found;
  const expression = compileExpression(rule.rule, isTransitionRule(rule) ? ['self', 'oldSelf'] : ['self']);
  compiled.set(rule, expression);
  return expression;
}

/** What is wrong with a rule of a schema; undefined if it can be used. */
export function ruleProblem(rule: ValidationRule): string | undefined {
  if (typeof rule.rule !== 'string' || rule.rule.trim() === '') return 'must be a CEL expression';
  if (rule.message !== undefined && typeof rule.message !== 'string') return 'message must be a text';
  try {
    ruleExpression(rule);
    if (rule.messageExpression !== undefined) compileExpression(rule.messageExpression, ['self']);
    return undefined;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return error.message;
  }
}
