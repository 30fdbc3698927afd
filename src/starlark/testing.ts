import { expect, test } from 'vitest';
import { SluiceError } from '../foundation/sluice-error.ts';
import type { StarlarkError } from './machine/starlark-error.ts';
import { runStarlark } from './run-starlark.ts';

/** The output of a script, line by line. */
export function linesOf(script: string): string[] {
  const lines: string[] = [];
  runStarlark(script, { name: 'test.star', print: (text) => lines.push(text) });
  return lines;
}

/** `repr` of an expression. */
export function reprOfExpression(expression: string): string {
  return linesOf(`print(repr((${expression})))`).join('\n');
}

/** The error that a script ends with. */
export function errorOf(script: string): StarlarkError {
  try {
    linesOf(script);
  } catch (error) {
    if (error instanceof SluiceError && error.details !== undefined) return error as StarlarkError;
    throw error;
  }
  throw new Error(`no error: ${script}`);
}

/** The problem, without its place. */
export function reasonOf(script: string): string {
  return errorOf(script).details.reason;
}

/** Tests of expressions and their `repr`. */
export function give(title: string, table: readonly (readonly [expression: string, repr: string])[]): void {
  test.each(table)(`${title}: %s`, (expression, repr) => {
    expect(reprOfExpression(expression)).toBe(repr);
  });
}

/** Tests of expressions and their errors. */
export function refuse(title: string, table: readonly (readonly [expression: string, reason: string])[]): void {
  test.each(table)(`${title}: %s`, (expression, reason) => {
    expect(reasonOf(`x = ${expression}`)).toBe(reason);
  });
}
