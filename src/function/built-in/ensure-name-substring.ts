import type { KrmFunction, ResourceList } from '../model/function.ts';
import type { Resource } from '../resource/resource.ts';
import { type FieldSpec, fieldSpecsAt, placesOf, selects } from './support/fields/field-spec.ts';
import {
  CONFIG_MAP,
  configOf,
  invalidConfig,
  isOfKind,
  KPT_FUNCTIONS,
  textAt,
  textsAt,
} from './support/fields/function-config.ts';
import { renameResources } from './support/names/rename-resources.ts';

const RBAC = 'rbac.authorization.k8s.io';

const ENSURE_NAME_SUBSTRING = { apiVersion: KPT_FUNCTIONS, kind: 'EnsureNameSubstring' };

interface Settings {
  readonly substring: string;
  readonly mode: 'prepend' | 'append';
  readonly more: readonly FieldSpec[];
}

export const ensureNameSubstring: KrmFunction = {
  name: 'ensure-name-substring',
  doc: {
    summary: 'Puts a prefix or a suffix to the names of the resources of a package.',
    description: [
      'A name that contains the text anywhere does not change, so running it twice changes nothing. References to renamed resources change too: in fields of the kinds of Kubernetes, such as the volumes of pods and the backends of an Ingress, and in `config.kubernetes.io/depends-on`. A subject of a role binding that names a service account of the package without its namespace gets the namespace.',
      'CustomResourceDefinitions, Namespaces, APIServices, Kptfiles and the context of the package (ConfigMap `kptfile.kpt.dev`) keep their names.',
      'It is configured by a ConfigMap with one entry, `prepend` or `append`, or by an EnsureNameSubstring with `substring` and `editMode`, which may name more fields with names by `additionalNameFields`: `path`, and `group`, `version`, `kind` of the resources, and `create` for a field that may be missing.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: ensure-name-substring:v0.2.0\n      configMap:\n        prepend: dev-\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nmetadata:\n  name: names\nsubstring: -dev\neditMode: append\nadditionalNameFields:\n  - path: spec/name\n    kind: MyOwnResource\n',
    ],
    differences: [
      'The context of the package keeps its name, by which other functions find it.',
      'A reference in `config.kubernetes.io/depends-on` changes exactly if what it refers to is renamed.',
      'Rules of roles are changed for the kinds that they name, not for others of the same name.',
    ],
    compared: 'the newest version, by its source',
  },
  run(list) {
    const { substring, mode, more } = settingsOf(list);
    const extended = (text: string) => (mode === 'prepend' ? substring + text : text + substring);
    const names = new Map<Resource, string>();
    for (const item of list.items) {
      if (keepsName(item)) continue;
      if (item.name !== '' && !item.name.includes(substring)) names.set(item, extended(item.name));
      for (const spec of more) {
        if (!selects(spec, item)) continue;
        for (const place of placesOf(item, spec.path, spec.create)) {
          const text = textAt(item, place) ?? '';
          if (!text.includes(substring)) item.set(place, extended(text));
        }
      }
    }
    renameResources(list.items, names);
    fillSubjectNamespaces(list.items);
  },
};

function settingsOf(list: ResourceList): Settings {
  const config = configOf(list, 'ensure-name-substring', [CONFIG_MAP, ENSURE_NAME_SUBSTRING]);
  const isMap = isOfKind(config, CONFIG_MAP);
  const entries = isMap ? [...textsAt(config, ['data'])] : [];
  if (isMap && entries.length !== 1)
    throw invalidConfig(
      config,
      `only 1 entry is allowed in the ConfigMap, \`prepend\` or \`append\`, but there are ${entries.length}`,
    );
  const [mode = '', substring = ''] = entries[0] ?? [
    textAt(config, ['editMode']) || 'prepend',
    textAt(config, ['substring']) ?? '',
  ];
  if (mode !== 'prepend' && mode !== 'append')
    throw invalidConfig(
      config,
      `unknown editMode ${JSON.stringify(mode)}: only \`prepend\` and \`append\` are allowed`,
    );
  if (substring === '') throw invalidConfig(config, 'substring must not be empty');
  const more = isMap
    ? []
    : [...fieldSpecsAt(config, 'additionalNameFields'), ...fieldSpecsAt(config, 'fieldSpecs')].filter(
        ({ path }) => path.join('/') !== 'metadata/name',
      );
  return { substring, mode, more };
}

function keepsName(item: Resource): boolean {
  const { group, kind } = item;
  if (group === '' && kind === 'ConfigMap') return item.name === 'kptfile.kpt.dev';
  if (kind === 'APIService') return group === 'apiregistration.k8s.io';
  if (kind === 'Kptfile') return group === 'kpt.dev';
  return kind === 'CustomResourceDefinition' || (kind === 'Namespace' && group === '');
}

/**
 * Writes the namespace of service accounts of the list into the subjects of role bindings that name them without one, as kustomize does
 * where it follows names. Kubernetes refuses such a subject.
 */
function fillSubjectNamespaces(items: readonly Resource[]): void {
  const accounts = Map.groupBy(
    items.filter(({ group, kind, namespace }) => kind === 'ServiceAccount' && group === '' && Boolean(namespace)),
    ({ name }) => name,
  );
  if (accounts.size === 0) return;
  for (const item of items) {
    if (item.group !== RBAC || (item.kind !== 'RoleBinding' && item.kind !== 'ClusterRoleBinding')) continue;
    for (let at = 0; item.node(['subjects', at]) !== undefined; at++) {
      const field = (key: string) => textAt(item, ['subjects', at, key]);
      if (field('kind') !== 'ServiceAccount' || field('namespace') !== undefined) continue;
      const named = (accounts.get(field('name') ?? '') ?? []).filter(
        ({ namespace }) => item.kind === 'ClusterRoleBinding' || namespace === item.namespace,
      );
      const [account] = named;
      if (account?.namespace !== undefined && named.length === 1)
        item.set(['subjects', at, 'namespace'], account.namespace);
    }
  }
}
