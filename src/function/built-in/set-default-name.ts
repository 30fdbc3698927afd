import type { KrmFunction } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import type { Resource } from '../resource/resource.ts';
import { CONFIG_MAP, configOf, invalidConfig, textAt } from './support/fields/function-config.ts';
import { renameResources } from './support/names/rename-resources.ts';

/** Groups of Config Connector whose resources are named. */
const GROUPS: ReadonlySet<string> = new Set(
  ['storage', 'serviceusage', 'redis', 'spanner'].map((group) => `${group}.cnrm.cloud.google.com`),
);

export const setDefaultName: KrmFunction = {
  name: 'set-default-name',
  doc: {
    summary: 'Names the Config Connector resources of a package after one given name.',
    description:
      'Sets `metadata.name` of the resources of the groups storage, serviceusage, redis and spanner of `cnrm.cloud.google.com` to `data.name` of a ConfigMap, such as package-context.yaml or the configuration of a Google Cloud project. References to them follow. Two resources of one kind that would get the same name are an error.',
    examples: ['pipeline:\n  mutators:\n    - image: set-default-name:v0.3\n      configPath: gcloud-config.yaml\n'],
    differences: [
      'There is no public documentation of this function; this follows the source that was proposed for it and never released.',
      'References of custom resources are not changed.',
    ],
  },
  run(list) {
    const config = configOf(list, 'set-default-name', [CONFIG_MAP]);
    const name = textAt(config, ['data', 'name']);
    if (name === undefined || name === '')
      throw invalidConfig(config, '`data.name` should not be empty: set it to the name');
    const named = list.items.filter((item) => GROUPS.has(item.group));
    const firstByKey = new Map<string, Resource>();
    for (const item of named) {
      const key = JSON.stringify([item.group, item.kind, item.namespace]);
      const first = firstByKey.get(key);
      if (first === undefined) firstByKey.set(key, item);
      else
        list.results.push(
          resultFor(
            'error',
            `cannot be named ${name}: ${first.describe()} would have the same name`,
            item,
            'metadata.name',
          ),
        );
    }
    if (firstByKey.size < named.length) return;
    renameResources(list.items, new Map(named.filter((item) => item.name !== name).map((item) => [item, name])));
  },
};
