import { z } from 'zod';
import { causesOf, invalidObject } from '../../../resource/object/invalid-object.ts';
import { labelSelectorSchema } from '../../../resource/selector/label-selector.ts';
import type { Resource } from '../../resource/resource.ts';
import { type ConfigKind, invalidConfig, isOfKind, KPT_FUNCTIONS } from '../support/fields/function-config.ts';

export const CEL_VALIDATOR: ConfigKind = { apiVersion: KPT_FUNCTIONS, kind: 'CELValidator' };
export const ADMISSION_POLICIES: readonly ConfigKind[] = ['v1', 'v1beta1', 'v1alpha1'].map((version) => ({
  apiVersion: `admissionregistration.k8s.io/${version}`,
  kind: 'ValidatingAdmissionPolicy',
}));

const texts = z.array(z.string());
const expression = z.string().min(1);
const namedExpressions = z.array(
  z.strictObject({ name: z.string().regex(/^[A-Za-z_]\w*$/, 'must be a name of letters and digits'), expression }),
);
const text = z.string().exactOptional();
const textMap = z.record(z.string(), z.string()).exactOptional();
const selectorSchema = z.strictObject({
  apiVersion: text,
  kind: text,
  name: text,
  namespace: text,
  labels: textMap,
  annotations: textMap,
});

const validation = { expression, message: text, messageExpression: text, reason: text };

const ruleSchema = z
  .strictObject({
    ...{ apiGroups: texts, apiVersions: texts, resources: texts, operations: texts, resourceNames: texts },
    scope: z.enum(['*', 'Namespaced', 'Cluster']),
  })
  .partial();

const constraintsSchema = z
  .strictObject({
    resourceRules: z.array(ruleSchema),
    excludeResourceRules: z.array(ruleSchema),
    objectSelector: labelSelectorSchema,
    namespaceSelector: labelSelectorSchema,
    matchPolicy: z.string(),
  })
  .partial();

const common = {
  matchConditions: z.array(z.strictObject({ name: z.string(), expression })).optional(),
  variables: namedExpressions.optional(),
};

// Strict: with a misspelt condition the policy would select too much.
const validatorSchema = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.unknown(),
  ...common,
  validations: z.array(z.strictObject({ ...validation, selectors: z.array(selectorSchema).exactOptional() })).min(1),
});

const admissionPolicySchema = z.object({
  spec: z.strictObject({
    ...common,
    validations: z.array(z.strictObject(validation)).min(1),
    matchConstraints: constraintsSchema,
    failurePolicy: z.enum(['Fail', 'Ignore']).optional(),
    auditAnnotations: z.unknown().optional(),
    paramKind: z.unknown().optional(),
  }),
});

export type ResourceRule = z.infer<typeof ruleSchema>;
export type MatchConstraints = z.infer<typeof constraintsSchema>;

type RulesConfig = Pick<z.infer<typeof validatorSchema>, 'matchConditions' | 'variables' | 'validations'>;

/** The rules of a CELValidator or a ValidatingAdmissionPolicy. */
export interface PolicyConfig extends RulesConfig {
  readonly matchConstraints?: MatchConstraints;
  /** True if an object that cannot be evaluated passes. */
  readonly ignoresFailures: boolean;
  /** The field with the rules: `spec`, or none. */
  readonly path: readonly string[];
}

/** Reads a configuration. Throws InvalidInput with the fields that are wrong, and for one without an expression. */
export function policyConfig(config: Resource): PolicyConfig {
  const { value } = config;
  if (isOfKind(config, CEL_VALIDATOR))
    return { ...parse(config, validatorSchema, value), ignoresFailures: false, path: [] };
  const { spec } = parse(config, admissionPolicySchema, value);
  // In a cluster, a binding names the object with the parameters.
  if (spec.paramKind !== undefined)
    throw invalidConfig(
      config,
      'spec.paramKind: parameters are available only in a cluster; write the values into the rules',
    );
  return { ...spec, ignoresFailures: spec.failurePolicy === 'Ignore', path: ['spec'] };
}

function parse<T>(config: Resource, schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw invalidObject(config.describe(), causesOf(result.error.issues, value, false));
  return result.data;
}
