import { isSeq, type YAMLMap } from 'yaml';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { KrmFunction } from '../model/function.ts';
import { Resource } from '../resource/resource.ts';
import { graftNode } from '../yaml/graft-node.ts';
import { configOf, invalidConfig, KPT_FUNCTIONS, textAt, textsAt } from './support/fields/function-config.ts';
import { fillTemplate } from './support/text/simple-template.ts';
import { sortedTexts } from './support/text/sorted-texts.ts';

const GEN_CONFIG_MAP = { apiVersion: KPT_FUNCTIONS, kind: 'GenConfigMap' };
const METADATA = 'configMapMetadata';

export const genConfigmap: KrmFunction = {
  name: 'gen-configmap',
  doc: {
    summary: 'Creates a ConfigMap from texts and templates, so that its content is easy to edit.',
    description: [
      'A GenConfigMap names the ConfigMap in `configMapMetadata` (name, namespace, labels, annotations; the name of the GenConfigMap without one), and lists its entries in `data`: `key`, `value`, and `type`. A value of type `gotmpl` is a template that names `params`, as in `{{.host}}:{{.port}}`; any other is copied as it is.',
      'The ConfigMap is written to `_gen_configmap_<name>.yaml`, or to its file if the package has it, with exactly the content of the configuration.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: docker.io/nephio/gen-configmap-fn:v5.0.0\n      configPath: gen-configmap.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: GenConfigMap\nmetadata:\n  name: settings\n  annotations:\n    config.kubernetes.io/local-config: "true"\nconfigMapMetadata:\n  name: web-settings\nparams:\n  host: web.example.org\n  port: "8080"\ndata:\n  - type: literal\n    key: colour\n    value: blue\n  - type: gotmpl\n    key: url\n    value: "https://{{.host}}:{{.port}}/"\n',
    ],
    differences: [
      'Templates may contain parameters, comments and trimmed blanks; conditions, loops and functions are an error.',
      'A missing parameter is an error rather than `<no value>`.',
      'A ConfigMap that the package has stays in its file, and keeps the comments of fields that stay.',
      'Of `configMapMetadata`, name, namespace, labels and annotations count.',
    ],
  },
  run(list) {
    const config = configOf(list, 'gen-configmap', [GEN_CONFIG_MAP]);
    const made = configMapOf(config);
    const there = list.items.find(
      ({ apiVersion, kind, namespace, name }) =>
        apiVersion === 'v1' && kind === 'ConfigMap' && namespace === made.namespace && name === made.name,
    );
    if (there === undefined) list.items.push(made);
    else there.document.contents = graftNode(there.root, made.root) as YAMLMap;
  },
};

function configMapOf(config: Resource): Resource {
  const name = textAt(config, [METADATA, 'name']) || config.name;
  const namespace = textAt(config, [METADATA, 'namespace']);
  const [labels, annotations] = ['labels', 'annotations'].map((field) => textsAt(config, [METADATA, field]));
  const data = dataOf(config);
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labels?.size ? { labels: Object.fromEntries(labels) } : {}),
    ...(annotations?.size ? { annotations: Object.fromEntries(annotations) } : {}),
  };
  const value = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
  return Resource.from(data.size === 0 ? value : { ...value, data: Object.fromEntries(sortedTexts(data)) }, {
    file: `_gen_configmap_${name}.yaml`,
    index: 0,
  });
}

function dataOf(config: Resource): ReadonlyMap<string, string> {
  const entries = config.node(['data']);
  const data = new Map<string, string>();
  if (entries === undefined) return data;
  if (!isSeq(entries)) throw invalidConfig(config, 'data must be a list of entries with key and value');
  const parameters = textsAt(config, ['params']);
  for (const at of entries.items.keys()) {
    const [type, key, value] = ['type', 'key', 'value'].map((field) => textAt(config, ['data', at, field]) ?? '');
    if (key === undefined || key === '') throw invalidConfig(config, `data entry ${at}, key must not be empty`);
    data.set(key, type === 'gotmpl' ? filled(config, at, value ?? '', parameters) : (value ?? ''));
  }
  return data;
}

function filled(config: Resource, at: number, template: string, parameters: ReadonlyMap<string, string>): string {
  try {
    return fillTemplate(template, parameters);
  } catch (error) {
    throw invalidConfig(config, `data entry ${at}: ${messageOf(error)}`);
  }
}
