import { fieldPath } from '../../../resource/object/invalid-object.ts';
import { ruleCauses } from '../../../resource/schema/structural/rule-causes.ts';
import { validateValue } from '../../../resource/schema/structural/validate-value.ts';
import type { ResourceList } from '../../model/function.ts';
import { type FunctionResult, resultFor } from '../../model/function-result.ts';
import type { Resource } from '../../resource/resource.ts';
import { type KubernetesSchemas, kubernetesSchemas } from '../../schema/kubernetes-schemas.ts';
import { PackageSchemas, type UsableSchema } from '../../schema/package-schemas.ts';
import { MAX_FINDINGS, truncateFindings } from '../support/max-findings.ts';
import { type KubeconformConfig, kubeconformConfig } from './kubeconform-config.ts';

/** Validates the resources by the schemas of their kinds. */
export async function validate(list: ResourceList): Promise<void> {
  const config = kubeconformConfig(list);
  for (const key of config.ignoredKeys)
    list.results.push({
      message: `${key} of the configuration is ignored: ${ignoredBecause(key)}`,
      severity: 'warning',
    });
  const validator = new Validator(list.items, await kubernetesSchemas(), config);
  const { results } = list;
  for (const item of list.items) {
    if (results.length > MAX_FINDINGS) break;
    validator.validate(item, results);
  }
  truncateFindings(results);
}

function ignoredBecause(key: string): string {
  return key.includes('schema_location')
    ? 'nothing is downloaded here; put the CustomResourceDefinitions into the package'
    : 'the key is unknown';
}

class Validator {
  readonly #kubernetes: KubernetesSchemas;
  readonly #package: PackageSchemas;
  readonly #config: KubeconformConfig;
  /** Kinds that were plain to have no schema. */
  readonly #reported = new Set<string>();

  constructor(items: readonly Resource[], kubernetes: KubernetesSchemas, config: KubeconformConfig) {
    this.#kubernetes = kubernetes;
    this.#package = new PackageSchemas(items, kubernetes.metadata);
    this.#config = config;
  }

  validate(item: Resource, results: FunctionResult[]): void {
    const { apiVersion, kind } = item;
    const { skipKinds } = this.#config;
    if (item.isLocalConfig || kind === 'Kptfile') return;
    if (skipKinds.has(kind) || skipKinds.has(`${apiVersion}/${kind}`)) return;
    const schema = this.#kubernetes.of(apiVersion, kind);
    if (schema !== undefined) this.#validateWith({ schema, canEvaluateRules: false }, item, results);
    else this.#validateCustom(item, results);
  }

  #validateCustom(item: Resource, results: FunctionResult[]): void {
    const { apiVersion, kind } = item;
    const found = this.#package.of(apiVersion, kind);
    if (found !== undefined && 'schema' in found) {
      this.#validateWith(found, item, results);
      return;
    }
    const name = `${kind} (${apiVersion})`;
    if (this.#reported.has(name) || (found === undefined && this.#config.ignoreMissingSchemas)) return;
    this.#reported.add(name);
    if (found !== undefined) {
      const message = `resources of kind ${name} are not validated, as Kubernetes does not accept their schema: ${found.problem}`;
      results.push(resultFor('warning', message, found.definition, 'spec'));
      return;
    }
    const versions = this.#kubernetes.versionsOf(kind);
    const known =
      versions.length === 0 ? '' : `; Kubernetes ${this.#kubernetes.release} has ${kind} in ${versions.join(', ')}`;
    const advice =
      'add its CustomResourceDefinition to the package, or name the kind in skip_kinds, or set ignore_missing_schemas';
    results.push(
      resultFor('warning', `there is no schema for ${name}, so it is not validated${known}: ${advice}`, item),
    );
  }

  #validateWith({ schema, canEvaluateRules }: UsableSchema, item: Resource, results: FunctionResult[]): void {
    const { value, unknownFields, causes } = validateValue(schema, item.value);
    const isSecret = item.kind === 'Secret' && item.apiVersion === 'v1';
    for (const { message, field } of causes)
      results.push(resultFor('error', plainMessage(message, isSecret), item, field || undefined));
    if (this.#config.strict)
      for (const path of unknownFields.slice(0, MAX_FINDINGS))
        results.push(resultFor('error', `unknown field ${JSON.stringify(path.at(-1))}`, item, fieldPath(path)));
    if (!canEvaluateRules || causes.length > 0) return;
    for (const { message, field } of ruleCauses(schema, value)) {
      // Rules may use functions that only a kube-apiserver has.
      const severity = message.includes('rule cannot be evaluated:  ') ? 'warning' : 'error';
      results.push(resultFor(severity, message, item, field || undefined));
    }
  }
}

function plainMessage(message: string, isSecret: boolean): string {
  // In Kubernetes' own kinds, only quantities have several forms.
  const plain = message.replace(
    'must match at least one of the allowed forms (anyOf)',
    'must be a quantity, such as 2, 500m or 1.5Gi',
  );
  return isSecret ? plain.replace(/^(Invalid value: ).*: (?=expected |must )/s, '$1') : plain;
}
