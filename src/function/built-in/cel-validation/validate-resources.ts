import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { ResourceList } from '../../model/function.ts';
import { type FunctionResult, resultFor } from '../../model/function-result.ts';
import type { Resource } from '../../resource/resource.ts';
import { selectResources } from '../../resource/selection.ts';
import { kubernetesSchemas } from '../../schema/kubernetes-schemas.ts';
import { configOf, isOfKind } from '../support/fields/function-config.ts';
import { MAX_FINDINGS, truncateFindings } from '../support/max-findings.ts';
import { ConstraintMatcher } from './match-constraints.ts';
import { ADMISSION_POLICIES, CEL_VALIDATOR, policyConfig } from './policy-config.ts';
import { type CompiledPolicy, type CompiledValidation, compilePolicy, PolicyEvaluation } from './policy-expressions.ts';

const MAX_MESSAGE_CHARACTERS = 1024;

/** Validates the resources with the rules of the configuration, or with the policies in the package. */
export async function validateResources(list: ResourceList): Promise<void> {
  const policies = await policiesOf(list);
  const { items, results } = list;
  for (const item of items) {
    const own = policies.filter((policy) => policy.selects(item));
    if (own.length === 0) continue;
    const object = item.value;
    for (const policy of own) validateResource(policy, item, object, results);
    if (results.length > MAX_FINDINGS) break;
  }
  truncateFindings(results);
}

interface Policy {
  readonly name: string;
  readonly compiled: CompiledPolicy;
  readonly ignoresFailures: boolean;
  selects(item: Resource): boolean;
  /** True if one of its validations selects a resource that the policy selects. */
  appliesTo(item: Resource, validation: CompiledValidation): boolean;
}

async function policiesOf(list: ResourceList): Promise<Policy[]> {
  const { items, config } = list;
  const own = items.filter((item) => item.isLocalConfig && ADMISSION_POLICIES.some((kind) => isOfKind(item, kind)));
  const configs =
    config === undefined && own.length > 0
      ? own
      : [configOf(list, 'cel-validation', [CEL_VALIDATOR, ...ADMISSION_POLICIES])];
  const matcher = new ConstraintMatcher(items, await kubernetesSchemas());
  return configs.map((each) => policyOf(each, items, matcher));
}

function policyOf(config: Resource, items: readonly Resource[], matcher: ConstraintMatcher): Policy {
  const parsed = policyConfig(config);
  const compiled = compilePolicy(config, parsed);
  const { ignoresFailures, matchConstraints, validations } = parsed;
  const rest = { name: config.name, compiled, ignoresFailures };
  if (matchConstraints !== undefined) {
    const isMatch = matcher.matcher(matchConstraints);
    return { ...rest, selects: (item) => isForClusters(item) && isMatch(item), appliesTo: () => true };
  }
  const usual = items.filter(isForClusters);
  const result = new Map(
    compiled.validations.map((validation, index) => {
      const { selectors = [] } = validations[index] ?? {};
      return [validation, new Set(selectors.length === 0 ? usual : selectResources({ selectors }, items))];
    }),
  );
  const isSelectedBy = (item: Resource, validation: CompiledValidation) => result.get(validation)?.has(item) === true;
  return {
    ...rest,
    selects: (item) => compiled.validations.some((each) => isSelectedBy(item, each)),
    appliesTo: isSelectedBy,
  };
}

function isForClusters({ isLocalConfig, kind }: Resource): boolean {
  return !isLocalConfig && kind !== 'Kptfile';
}

function validateResource(policy: Policy, item: Resource, object: unknown, results: FunctionResult[]): void {
  const { compiled, ignoresFailures, name } = policy;
  const evaluation = new PolicyEvaluation(compiled, object);
  const add = (severity: FunctionResult['severity'], message: string, reason?: string) => {
    const tags = { policy: name, ...(reason === undefined ? {} : { reason }) };
    results.push({ ...resultFor(severity, message.slice(0, MAX_MESSAGE_CHARACTERS), item), tags });
  };
  /** Undefined, with a result, if it cannot be evaluated. */
  const holds = (expression: CompiledValidation['expression']): boolean | undefined => {
    try {
      return evaluation.test(expression);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      add(ignoresFailures ? 'warning' : 'error', `cannot be evaluated: ${error.message}`);
      return undefined;
    }
  };
  if (!compiled.matchConditions.every((condition) => holds(condition) === true)) return;
  for (const validation of compiled.validations) {
    if (policy.appliesTo(item, validation) && holds(validation.expression) === false)
      add('error', messageOf(validation, evaluation), validation.reason);
  }
}

/** A message that cannot be made must not hide that the rule is broken. */
function messageOf({ message, messageExpression }: CompiledValidation, evaluation: PolicyEvaluation): string {
  if (messageExpression === undefined) return message;
  try {
    const text = evaluation.evaluate(messageExpression);
    return typeof text === 'string' && text.trim() !== '' && !text.includes('\n') ? text.trim() : message;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return message;
  }
}
