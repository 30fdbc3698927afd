import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import type { Resource } from '../resource/resource.ts';
import { CONFIG_MAP, configOf, isOfKind, textAt } from './support/fields/function-config.ts';
import { renameResources } from './support/names/rename-resources.ts';

export const setNamePrefix: KrmFunction = {
  name: 'set-name-prefix',
  doc: {
    summary: 'Replaces the placeholder that the names of the resources of a package begin with.',
    description: [
      'A resource named `packagename` gets the prefix as its name, and one named `packagename-database` becomes `<prefix>-database`; other names stay. References to renamed resources follow, as with ensure-name-substring. Local-config resources, Kptfiles and ResourceGroups keep their names.',
      'The prefix is `data.prefix` of a ConfigMap, or else the name of the package in the ConfigMap `kptfile.kpt.dev` (package-context.yaml). `data.oldPrefix` names another placeholder.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: set-name-prefix\n',
      'pipeline:\n  mutators:\n    - image: set-name-prefix\n      configMap:\n        prefix: blue\n        oldPrefix: example\n',
    ],
    differences: [
      'The function of this name was never released with documentation; this follows its source.',
      'References of custom resources are not changed.',
    ],
  },
  run(list) {
    const { prefix, old } = settingsOf(list);
    const names = new Map<Resource, string>();
    for (const item of list.items) {
      if (item.isLocalConfig || item.kind === 'Kptfile' || item.kind === 'ResourceGroup') continue;
      const { name } = item;
      if (name !== old && !name.startsWith(`${old}-`)) continue;
      if (prefix !== old) names.set(item, prefix + name.slice(old.length));
    }
    renameResources(list.items, names);
  },
};

function settingsOf(list: ResourceList): { prefix: string; old: string } {
  const config = list.config === undefined ? undefined : configOf(list, 'set-name-prefix', [CONFIG_MAP]);
  const output = (key: string) => (config === undefined ? undefined : textAt(config, ['data', key])) || undefined;
  const context = list.items.find((item) => isOfKind(item, CONFIG_MAP) && item.name === 'kptfile.kpt.dev');
  const prefix = output('prefix') ?? (context === undefined ? undefined : textAt(context, ['data', 'name']));
  if (prefix === undefined || prefix === '')
    throw new SluiceError(
      'InvalidInput',
      'set-name-prefix needs a prefix: set `data.prefix` in a ConfigMap, or a package-context.yaml with `data.name`',
    );
  return { prefix, old: output('oldPrefix') ?? 'packagename' };
}
