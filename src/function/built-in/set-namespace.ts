import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import type { FunctionResult } from '../model/function-result.ts';
import { type FunctionVersion, isBefore } from '../model/function-version.ts';
import type { FieldPath, Resource } from '../resource/resource.ts';
import {
  CONFIG_MAP,
  configOf,
  invalidConfig,
  isOfKind,
  KPT_FUNCTIONS,
  textAt,
} from './support/fields/function-config.ts';
import { KindScopes } from './support/fields/kind-scope.ts';
import { changeDependencies } from './support/names/depends-on.ts';

const SET_NAMESPACE = { apiVersion: KPT_FUNCTIONS, kind: 'SetNamespace' };

/** The namespace of a namespaced resource without one, as in Kubernetes. */
const DEFAULT_NAMESPACE = 'default';

/** Annotation with `group|kind|namespace|name` of the upstream resource, as kpt writes it. */
const ORIGIN = 'internal.kpt.dev/upstream-identifier';

interface Settings {
  readonly namespace: string;
  /** Only this namespace is replaced; all if absent. */
  readonly matcher: string | undefined;
}

export const setNamespace: KrmFunction = {
  name: 'set-namespace',
  doc: {
    summary: 'Puts the resources of a package into a namespace.',
    description: [
      'Sets `metadata.namespace` of every resource that lives in a namespace, and everything else that names that namespace: the name of `Namespace` objects, the subjects of role bindings that are service accounts with a namespace, `spec.conversion.webhook.clientConfig.service` of CustomResourceDefinitions, `spec.service` of APIServices, and references to resources of the package in `config.kubernetes.io/depends-on`. Webhook configurations do not change.',
      'Whether a kind lives in a namespace is known for the kinds of Kubernetes and for those that a CustomResourceDefinition of the package defines. A resource of any other kind is moved if it names a namespace, and does not change if it names none; v0.1 sets the namespace even then.',
      'Local-config resources and Kptfiles do not change.',
      'The namespace is `data.namespace` of a ConfigMap, `namespace` of a SetNamespace, or, with package-context.yaml as the configuration, the name of the package (`data.name` of the ConfigMap `kptfile.kpt.dev`). With `namespaceMatcher` beside it, only what is in that namespace, or came from it upstream, is moved.',
      'A configuration that is missing, or names no namespace, is an error. v0.4.2 to v0.4.5 report it and exit with 0, so that the pipeline continues; all others end it.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: set-namespace:v0.4.1\n      configMap:\n        namespace: backend\n',
      'pipeline:\n  mutators:\n    - image: set-namespace:v0.4.1\n      configPath: package-context.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nmetadata:\n  name: move\nnamespace: backend\nnamespaceMatcher: example\n',
    ],
    differences: [
      'A CustomResourceDefinition or APIService that names no service is not given one.',
      'Kinds of all Kubernetes versions are known, whatever version a resource is written for, and so are kinds that the package defines itself.',
      'Resources that came from several namespaces upstream are all moved, as since v0.4.2; older images refuse them.',
      'With `namespaceMatcher`, a resource without a namespace that does not match is not given the namespace `default`.',
      'A list of references in `config.kubernetes.io/depends-on` is updated, too.',
      'Kptfiles do not change even if they are not marked as local configuration.',
      'Comments stay where they are.',
    ],
    compared: 'v0.4.1, by `npm run test:go`; newer ones by their source',
  },
  run(list, { version }) {
    const settings = passableSettings(list, version);
    if (settings === undefined) return;
    const items = list.items.filter((item) => !item.isLocalConfig && item.kind !== 'Kptfile');
    const kinds = new KindScopes(list.items);
    const movesUnknown = isBefore(version, '0.2.0');
    const isNamespaced = (item: Resource): boolean =>
      (kinds.scopeOf(item) ?? (movesUnknown || item.namespace ? 'Namespaced' : 'Cluster')) === 'Namespaced';
    const known = new Set<string>();
    for (const item of items) if (isNamespaced(item)) known.add(keyOf(item, namespaceOf(item)));

    const values = new Changes(settings);
    for (const item of items) setIn(item, values, isNamespaced(item));
    const references = new Changes(settings);
    for (const item of items)
      changeDependencies(item, (dependency) => {
        const { namespace } = dependency;
        if (namespace === undefined || !known.has(keyOf(dependency, namespace))) return undefined;
        return references.accepts(namespace) ? { ...dependency, namespace: settings.namespace } : undefined;
      });
    list.results.push(
      values.result(`all matching namespaces are already "${settings.namespace}". no value changed`, 'namespace'),
      references.result(
        'all `depends-on` annotations are up-to-date. no `namespace` changed',
        '`depends-on` annotation namespace',
      ),
    );
  },
};

/** Undefined if they are wrong and the version that is pinned reports that and exits with 0. Throws InvalidInput in all other versions. */
function passableSettings(list: ResourceList, version: FunctionVersion | undefined): Settings | undefined {
  try {
    return settingsOf(list);
  } catch (error) {
    const passes = version !== undefined && !isBefore(version, '0.4.2') && isBefore(version, '0.5.0');
    if (!passes || !isSluiceError(error, 'InvalidInput')) throw error;
    list.results.push({ message: error.message, severity: 'error' });
    list.errorsPass = true;
    return undefined;
  }
}

function settingsOf(list: ResourceList): Settings {
  const config = configOf(list, 'set-namespace', [CONFIG_MAP, SET_NAMESPACE]);
  const isMap = isOfKind(config, CONFIG_MAP);
  const at = (field: string) => textAt(config, isMap ? ['data', field] : [field]) || undefined;
  const isContext = isMap && config.name === 'kptfile.kpt.dev';
  const namespace = at('namespace') ?? (isContext ? at('name') : undefined);
  if (namespace === undefined) {
    const field = isContext ? 'data.name' : isMap ? 'data.namespace' : 'namespace';
    throw invalidConfig(config, `\`${field}\` should not be empty: name the namespace`);
  }
  return { namespace, matcher: at('namespaceMatcher') };
}

/** Selects the fields to change, and counts them. */
class Changes {
  readonly #settings: Settings;
  readonly #old = new Set<string>();
  #count = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * True if a field is to be changed. `current` is its namespace, undefined for a missing field; `origin` is the namespace that
   * the resource has upstream.
   */
  accepts(current: string | undefined, origin?: string): boolean {
    const { namespace, matcher } = this.#settings;
    const effective = current ?? DEFAULT_NAMESPACE;
    if (current === namespace || (matcher !== undefined && matcher !== effective && matcher !== origin)) return false;
    this.#old.add(effective);
    this.#count++;
    return true;
  }

  /** Sets a field that contains the name of a namespace, or may contain it. */
  set(resource: Resource, path: FieldPath, origin?: string): void {
    const current = textAt(resource, path) || undefined;
    if (this.accepts(current, origin)) resource.set(path, this.#settings.namespace);
  }

  result(nothing: string, what: string): FunctionResult {
    const changed = `${what} [${[...this.#old].sort().join(' ')}] updated to "${this.#settings.namespace}", ${this.#count} value(s) changed`;
    return { message: this.#count === 0 ? nothing : changed, severity: 'info' };
  }
}

function setIn(item: Resource, changes: Changes, isNamespaced: boolean): void {
  const [, , namespace, name] = (item.annotation(ORIGIN) ?? '').split('|');
  const service = serviceOf(item);
  if (item.kind === 'Namespace' && item.group === '') changes.set(item, ['metadata', 'name'], name);
  else if (service !== undefined && item.node(service) !== undefined) changes.set(item, [...service, 'namespace']);
  if (item.group === 'rbac.authorization.k8s.io' && (item.kind === 'ClusterRoleBinding' || item.kind === 'RoleBinding'))
    setInSubjects(item, changes);
  if (isNamespaced) changes.set(item, ['metadata', 'namespace'], namespace);
}

/** The field that names a service in a namespace, if resources of the kind have one. */
function serviceOf({ group, kind }: Resource): readonly string[] | undefined {
  if (group === 'apiextensions.k8s.io' && kind === 'CustomResourceDefinition')
    return ['spec', 'conversion', 'webhook', 'clientConfig', 'service'];
  return group === 'apiregistration.k8s.io' && kind === 'APIService' ? ['spec', 'service'] : undefined;
}

function setInSubjects(item: Resource, changes: Changes): void {
  for (let at = 0; item.node(['subjects', at]) !== undefined; at++) {
    const path = ['subjects', at, 'namespace'];
    if (textAt(item, ['subjects', at, 'kind']) === 'ServiceAccount' && textAt(item, path)) changes.set(item, path);
  }
}

function namespaceOf(item: Resource): string {
  return item.namespace ?? DEFAULT_NAMESPACE;
}

function keyOf({ group, kind, name }: { group: string; kind: string; name: string }, namespace: string): string {
  return JSON.stringify([group, kind, namespace, name]);
}
