import { isJsonObject } from '../../../resource/object/own-property.ts';
import { labelSelector, matchesLabels } from '../../../resource/selector/label-selector.ts';
import type { Resource } from '../../resource/resource.ts';
import type { KubernetesSchemas, ResourceName } from '../../schema/kubernetes-schemas.ts';
import type { MatchConstraints, ResourceRule } from './policy-config.ts';

/** Matches the resources of a package that a ValidatingAdmissionPolicy selects, when they are created or updated. */
export class ConstraintMatcher {
  readonly #kubernetes: KubernetesSchemas;
  readonly #defined = new Map<string, ResourceName>();
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();

  constructor(items: readonly Resource[], kubernetes: KubernetesSchemas) {
    this.#kubernetes = kubernetes;
    for (const item of items) {
      if (item.kind === 'Namespace' && item.apiVersion === 'v1') this.#namespaces.set(item.name, labelsOf(item));
      if (item.kind === 'CustomResourceDefinition') this.#define(item.get(['spec']));
    }
  }

  /** Throws InvalidInput for an invalid selector. */
  matcher(constraints: MatchConstraints): (item: Resource) => boolean {
    const { resourceRules = [], excludeResourceRules = [], objectSelector = {}, namespaceSelector = {} } = constraints;
    const object = labelSelector(objectSelector);
    const namespace = labelSelector(namespaceSelector);
    return (item) =>
      resourceRules.some((rule) => this.#isMatch(rule, item)) &&
      !excludeResourceRules.some((rule) => this.#isMatch(rule, item)) &&
      matchesLabels(object, labelsOf(item)) &&
      (namespace.requirements.length === 0 || matchesLabels(namespace, this.#namespaceLabels(item)));
  }

  #isMatch(rule: ResourceRule, item: Resource): boolean {
    const { apiGroups = [], apiVersions = [], resources = [], operations = [], resourceNames = [], scope = '*' } = rule;
    const { plural, namespaced } = this.#resourceName(item);
    const version = item.apiVersion.slice(item.apiVersion.indexOf('/') + 1);
    return (
      ['*', 'CREATE', 'UPDATE'].some((operation) => operations.includes(operation)) &&
      hasOne(apiGroups, item.group) &&
      hasOne(apiVersions, version) &&
      // Without subresources; `pods/*` means the pods too.
      ['*', '*/*', plural, `${plural}/*`].some((name) => resources.includes(name)) &&
      (resourceNames.length === 0 || resourceNames.includes(item.name)) &&
      (scope === '*' || (scope === 'Namespaced') === namespaced)
    );
  }

  #resourceName({ apiVersion, kind, group, namespace }: Resource): ResourceName {
    return (
      this.#kubernetes.resourceName(apiVersion, kind) ??
      this.#defined.get(`${group}/${kind}`) ?? { plural: guessedPlural(kind), namespaced: namespace !== undefined }
    );
  }

  #define(spec: unknown): void {
    if (!isJsonObject(spec) || !isJsonObject(spec.names)) return;
    const { kind, plural } = spec.names;
    this.#defined.set(`${spec.group}/${kind}`, { plural: String(plural), namespaced: spec.scope === 'Namespaced' });
  }

  #namespaceLabels({ namespace, name, kind, apiVersion }: Resource): Readonly<Record<string, string>> {
    const of = kind === 'Namespace' && apiVersion === 'v1' ? name : namespace;
    if (of === undefined) return {};
    return { ...this.#namespaces.get(of), 'kubernetes.io/metadata.name': of };
  }
}

function hasOne(wanted: readonly string[], value: string): boolean {
  return wanted.includes('*') || wanted.includes(value);
}

function labelsOf(item: Resource): Readonly<Record<string, string>> {
  const labels = item.get(['metadata', 'labels']);
  return isJsonObject(labels) ? (labels as Readonly<Record<string, string>>) : {};
}

/** As Kubernetes guesses it without a definition. */
function guessedPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular.endsWith('s')) return `${singular}es`;
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}
