import { compileExpression, type Expression } from '../../../expression/expression.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { fieldPath } from '../../../resource/object/invalid-object.ts';
import type { Resource } from '../../resource/resource.ts';
import { invalidConfig } from '../support/fields/function-config.ts';
import type { PolicyConfig } from './policy-config.ts';

/** Variables that expressions have only in a cluster. */
const CLUSTER_ONLY = ['oldObject', 'request', 'params', 'namespaceObject', 'authorizer'];

interface Compiled {
  readonly expression: Expression;
  /** Names of the variables that it may use. */
  readonly needs: readonly string[];
}

export interface CompiledValidation {
  readonly expression: Compiled;
  readonly messageExpression: Compiled | undefined;
  /** The message without a messageExpression, or if that returns none. */
  readonly message: string;
  readonly reason: string | undefined;
}

/** The compiled expressions of a policy, which evaluate any number of objects. */
export interface CompiledPolicy {
  readonly variables: ReadonlyMap<string, Compiled>;
  readonly matchConditions: readonly Compiled[];
  readonly validations: readonly CompiledValidation[];
}

/** Compiles all expressions. Throws InvalidInput for the first invalid one, or one with a variable of a cluster. */
export function compilePolicy(
  config: Resource,
  { variables = [], matchConditions = [], validations, path }: PolicyConfig,
) {
  const known = new Map<string, Compiled>();
  const compile = (text: string, ...at: (string | number)[]): Compiled => {
    try {
      const names = [...known.keys()].filter((name) => new RegExp(`\\b${name}\\b`).test(text));
      return { expression: compileExpression(text, ['object', 'variables']), needs: names };
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      const missing = CLUSTER_ONLY.find((name) => error.message.includes(`: ${name} is not known`));
      const why = missing === undefined ? '' : `; ${missing} exists only during admission in a cluster`;
      throw invalidConfig(config, `${fieldPath([...path, ...at])}: ${error.message}${why}`);
    }
  };
  // A variable may use those before it.
  for (const [index, { name, expression }] of variables.entries())
    known.set(name, compile(expression, 'variables', index, 'expression'));
  return {
    variables: known,
    matchConditions: matchConditions.map(({ expression }, index) =>
      compile(expression, 'matchConditions', index, 'expression'),
    ),
    validations: validations.map(({ expression, message, messageExpression, reason }, index) => ({
      expression: compile(expression, 'validations', index, 'expression'),
      messageExpression:
        messageExpression === undefined
          ? undefined
          : compile(messageExpression, 'validations', index, 'messageExpression'),
      message: message?.trim() || `failed expression: ${expression.trim()}`,
      reason,
    })),
  } satisfies CompiledPolicy;
}

/** Evaluates expressions of a policy for one object; every variable at most once, and only if it may be used. */
export class PolicyEvaluation {
  readonly #policy: CompiledPolicy;
  readonly #object: unknown;
  readonly #variables = new Map<string, { readonly value: unknown } | { readonly error: unknown }>();

  constructor(policy: CompiledPolicy, object: unknown) {
    this.#policy = policy;
    this.#object = object;
  }

  /** Throws InvalidInput or LimitExceeded, as `Expression.test` does. */
  test(compiled: Compiled): boolean {
    return compiled.expression.test(this.#bindings(compiled));
  }

  /** Throws as `test` does. */
  evaluate(compiled: Compiled): unknown {
    return compiled.expression.evaluate(this.#bindings(compiled));
  }

  #bindings({ needs }: Compiled): Record<string, unknown> {
    return { object: this.#object, variables: Object.fromEntries(needs.map((name) => [name, this.#variable(name)])) };
  }

  #variable(name: string): unknown {
    const known = this.#variables.get(name) ?? this.#compute(name);
    this.#variables.set(name, known);
    if ('error' in known) throw known.error;
    return known.value;
  }

  #compute(name: string): { readonly value: unknown } | { readonly error: unknown } {
    const compiled = this.#policy.variables.get(name);
    try {
      return { value: compiled === undefined ? null : this.evaluate(compiled) };
    } catch (error) {
      return { error };
    }
  }
}
