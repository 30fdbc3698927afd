import type { ValidationRule } from './structural/structural-schema.ts';

/**
 * Metadata of a zod schema, for `.meta()`: CEL rules of the definition in a cluster, which has no refinements. A kube-apiserver prints the
 * refused value, but not with the reason FieldValueForbidden.
 */
export function clusterRules(
  ...rules: readonly (readonly [rule: string, message: string, reason?: 'FieldValueForbidden'])[]
) {
  const validations: readonly ValidationRule[] = rules.map(([rule, message, reason]) => ({
    ...{ rule, message },
    ...(reason === undefined ? {} : { reason }),
  }));
  return { 'x-kubernetes-validations': validations };
}
