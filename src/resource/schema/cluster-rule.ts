import type { ValidationRule } from './structural/structural-schema.ts';

/** Metadata of a zod schema, for `.meta()`: CEL rules of the definition in a cluster, which has no refinements. */
export function clusterRules(...rules: readonly (readonly [rule: string, message: string])[]) {
  const validations: readonly ValidationRule[] = rules.map(([rule, message]) => ({ rule, message }));
  return { 'x-kubernetes-validations': validations };
}
