import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../../function.ts';
import { type FunctionResult, resultFor } from '../../function-result.ts';
import { selectResources } from '../../pipeline/selection.ts';
import type { Resource } from '../../resource-list/resource.ts';
import { kubernetesSchemas } from '../../schema/kubernetes-schemas.ts';
import { configOf, isOfKind } from '../support/function-config.ts';
import { ConstraintMatcher } from './match-constraints.ts';
import { ADMISSION_POLICIES, CEL_VALIDATOR, policyConfig } from './policy-config.ts';
import { type CompiledPolicy, type CompiledValidation, compilePolicy, PolicyEvaluation } from './policy-expressions.ts';

/** Nobody reads more. */
const MAX_FINDINGS = 1000;
const MAX_MESSAGE_LENGTH = 1024;

export const celValidation: KrmFunction = {
  name: 'cel-validation',
  doc: {
    summary: 'Validates resources by rules that are CEL expressions.',
    description: [
      'Evaluates every rule for every resource that it is about; the resource is `object`. A rule that is not true is an error, with its `message` or what its `messageExpression` gives; so is one that cannot be evaluated, for instance because a field is missing: ask with `has(object.spec.replicas)`.',
      'The configuration is a CELValidator with `validations`. Each may have `selectors`, as entries of a pipeline have them; without, it is about all resources but Kptfiles and local-config ones. `variables` are expressions that others use as `variables.NAME`; only resources for which all `matchConditions` are true are judged.',
      'Or it is a ValidatingAdmissionPolicy, as Kubernetes has it: `matchConstraints` say which resources it is about, and with `failurePolicy: Ignore` a rule that cannot be evaluated is a warning. Without a configuration the ValidatingAdmissionPolicies count that the package has as local-config resources.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  validators:\n    - image: cel-validation:latest\n      configPath: rules.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: CELValidator\nmetadata:\n  name: rules\n  annotations:\n    config.kubernetes.io/local-config: "true"\nvariables:\n  - name: containers\n    expression: object.spec.template.spec.containers\nvalidations:\n  - expression: object.spec.replicas <= 5\n    message: at most 5 replicas\n    selectors:\n      - kind: Deployment\n  - expression: variables.containers.all(c, has(c.resources))\n    messageExpression: "\'no resources in \' + variables.containers.filter(c, !has(c.resources))[0].name"\n    selectors:\n      - kind: Deployment\n      - kind: StatefulSet\n',
      'apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: no-latest\n  annotations:\n    config.kubernetes.io/local-config: "true"\nspec:\n  matchConstraints:\n    resourceRules:\n      - apiGroups: ["apps"]\n        apiVersions: ["v1"]\n        operations: ["CREATE", "UPDATE"]\n        resources: ["deployments"]\n  validations:\n    - expression: "object.spec.template.spec.containers.all(c, !c.image.endsWith(\':latest\'))"\n      message: images need a version\n',
    ],
    differences: [
      'There is no published function of this name; a ValidatingAdmissionPolicy differs as follows from what it is in a cluster.',
      '`oldObject`, `request`, `params`, `namespaceObject` and `authorizer` are not there: a policy that uses them, or has a `paramKind`, is an invalid configuration.',
      'The object is as it is written, without the defaults that a kube-apiserver fills in.',
      'Bindings, `auditAnnotations` and `matchPolicy` have no effect, and the functions that Kubernetes adds to CEL, such as `quantity` and `url`, are not there.',
      'A variable that is a whole number of type double counts as an int; times and durations are texts.',
    ],
  },
  // Rules may be about the Kptfile.
  readsStatus: true,
  async run(list) {
    const policies = await policiesOf(list);
    const { items, results } = list;
    for (const item of items) {
      const own = policies.filter((policy) => policy.isAbout(item));
      if (own.length === 0) continue;
      const object = item.value;
      for (const policy of own) judge(policy, item, object, results);
      if (results.length > MAX_FINDINGS) break;
    }
    if (results.length > MAX_FINDINGS) {
      results.length = MAX_FINDINGS;
      results.push({ message: 'there is more: correct these first', severity: 'error' });
    }
  },
};

interface Policy {
  readonly name: string;
  readonly compiled: CompiledPolicy;
  readonly ignoresFailures: boolean;
  isAbout(item: Resource): boolean;
  /** Whether one of its validations is about a resource that the policy is about. */
  isJudgedBy(item: Resource, validation: CompiledValidation): boolean;
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
    return { ...rest, isAbout: (item) => isForClusters(item) && isMatch(item), isJudgedBy: () => true };
  }
  const usual = items.filter(isForClusters);
  const judged = new Map(
    compiled.validations.map((validation, index) => {
      const { selectors = [] } = validations[index] ?? {};
      return [validation, new Set(selectors.length === 0 ? usual : selectResources({ selectors }, items))];
    }),
  );
  const isJudgedBy = (item: Resource, validation: CompiledValidation) => judged.get(validation)?.has(item) === true;
  return { ...rest, isAbout: (item) => compiled.validations.some((each) => isJudgedBy(item, each)), isJudgedBy };
}

function isForClusters({ isLocalConfig, kind }: Resource): boolean {
  return !isLocalConfig && kind !== 'Kptfile';
}

function judge(policy: Policy, item: Resource, object: unknown, results: FunctionResult[]): void {
  const { compiled, ignoresFailures, name } = policy;
  const evaluation = new PolicyEvaluation(compiled, object);
  const add = (severity: FunctionResult['severity'], message: string, reason?: string) => {
    const tags = { policy: name, ...(reason === undefined ? {} : { reason }) };
    results.push({ ...resultFor(severity, message.slice(0, MAX_MESSAGE_LENGTH), item), tags });
  };
  /** Undefined, and told, if it cannot be evaluated. */
  const holds = (expression: CompiledValidation['expression']): boolean | undefined => {
    try {
      return evaluation.test(expression);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      add(ignoresFailures ? 'warning' : 'error', `cannot be judged: ${error.message}`);
      return undefined;
    }
  };
  if (!compiled.matchConditions.every((condition) => holds(condition) === true)) return;
  for (const validation of compiled.validations) {
    if (policy.isJudgedBy(item, validation) && holds(validation.expression) === false)
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
