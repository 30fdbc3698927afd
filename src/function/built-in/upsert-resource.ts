import { isMap, isSeq, type YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import { Resource } from '../resource/resource.ts';
import { graftNode } from '../yaml/graft-node.ts';
import { invalidConfig } from './support/fields/function-config.ts';

const TARGET_PATH = 'config.kubernetes.io/target-path';

/** Annotations of a configuration that the new resource does not get. */
const OWN_ANNOTATIONS = [
  TARGET_PATH,
  ...['config.kubernetes.io/function', 'config.k8s.io/function'],
  ...['config.kubernetes.io', 'internal.config.kubernetes.io'].flatMap((prefix) =>
    ['path', 'index', 'seqindent'].map((name) => `${prefix}/${name}`),
  ),
];

export const upsertResource: KrmFunction = {
  name: 'upsert-resource',
  doc: {
    summary: 'Adds resources to a package, or replaces existing ones.',
    description: [
      'The configuration is the resource itself, or a List with several in `items`. A resource of the package with the same group, kind, namespace and name is replaced in its place, every occurrence; otherwise the resource is added in a file of its own.',
      '`config.kubernetes.io/target-path` names the file to add it to, and then only a resource in that file is replaced. Annotations of the configuration stay on the resource, except for this one and those for the place of the configuration.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: upsert-resource:v0.2.0\n      configPath: upsert.yaml\n',
      'apiVersion: v1\nkind: List\nmetadata:\n  name: upsert\nitems:\n  - apiVersion: v1\n    kind: Service\n    metadata:\n      name: web\n    spec:\n      selector:\n        app: web\n',
    ],
    differences: ['Comments of a replaced resource stay on the fields that stay.'],
  },
  run(list) {
    const byKey = new Map<string, Resource[]>();
    for (const item of list.items) found(byKey, item).push(item);
    for (const given of givenResources(list)) {
      const path = given.annotation(TARGET_PATH);
      for (const name of OWN_ANNOTATIONS) given.delete(['metadata', 'annotations', name]);
      const annotations = given.node(['metadata', 'annotations']);
      if (isMap(annotations) && annotations.items.length === 0) given.delete(['metadata', 'annotations']);

      const same = found(byKey, given);
      const matches = same.filter(({ file }) => path === undefined || path === file);
      for (const item of matches)
        item.document.contents = graftNode(item.root, given.root.clone() as YAMLMap) as YAMLMap;
      if (matches.length > 0) continue;
      given.file = path ?? '';
      same.push(given);
      list.items.push(given);
    }
  },
};

/** New resources from the configuration. */
function givenResources({ config }: ResourceList): Resource[] {
  if (config === undefined)
    throw new SluiceError(
      'InvalidInput',
      'upsert-resource needs a configuration: set configPath to the resource to add',
    );
  const place = { file: '', index: 0 };
  if (config.kind !== 'List') return [Resource.of(config.root.clone() as YAMLMap, place)];
  const items = config.node(['items']);
  if (items === undefined) return [];
  if (!isSeq(items)) throw invalidConfig(config, 'items must be a list of resources');
  return items.items.map((item, at) => {
    const resource = isMap(item) ? Resource.of(item.clone() as YAMLMap, place) : undefined;
    if (resource === undefined || resource.kind === '' || resource.name === '')
      throw invalidConfig(config, `items[${at}] must be a resource with kind and metadata.name`);
    return resource;
  });
}

function found(byKey: Map<string, Resource[]>, { group, kind, namespace, name }: Resource): Resource[] {
  const key = JSON.stringify([group, kind, namespace, name]);
  const same = byKey.get(key) ?? [];
  byKey.set(key, same);
  return same;
}
