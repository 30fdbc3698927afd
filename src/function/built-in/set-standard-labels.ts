import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction } from '../model/function.ts';
import type { Resource } from '../resource/resource.ts';
import { labelResources } from './set-labels.ts';
import { configOf, isOfKind, KPT_FUNCTIONS, textAt } from './support/fields/function-config.ts';
import { setLabelsIn } from './support/fields/set-labels-in.ts';

const SET_STANDARD_LABELS = { apiVersion: KPT_FUNCTIONS, kind: 'SetStandardLabels' };

export const setStandardLabels: KrmFunction = {
  name: 'set-standard-labels',
  doc: {
    summary: 'Labels the resources of a package with its name, as Kubernetes recommends.',
    description: [
      'Sets one label to the name in the Kptfile, in the way of set-labels: `app.kubernetes.io/instance` in a package for deployment, which has the ConfigMap `kptfile.kpt.dev` (package-context.yaml), and `app.kubernetes.io/name` in any other.',
      'It needs no configuration. `forDeployment: true` or `false` of a SetStandardLabels says which of the two the package is.',
    ].join('\n\n'),
    examples: ['pipeline:\n  mutators:\n    - image: set-standard-labels:v0.1\n'],
    differences: ['`forDeployment` is heeded, as documented.'],
  },
  run(list) {
    const kptfile = rootKptfile(list.items);
    if (kptfile === undefined)
      throw new SluiceError(
        'InvalidInput',
        'set-standard-labels found no Kptfile, whose name is the value of the label',
      );
    const config = list.config === undefined ? undefined : configOf(list, 'set-standard-labels', [SET_STANDARD_LABELS]);
    const output = config === undefined ? undefined : textAt(config, ['forDeployment'])?.toLowerCase();
    const isForDeployment = output === undefined ? list.items.some(isPackageContext) : output === 'true';
    const labels = new Map([[`app.kubernetes.io/${isForDeployment ? 'instance' : 'name'}`, kptfile.name]]);
    labelResources(list, labels, (resource) => setLabelsIn(resource, labels));
  },
};

function isPackageContext(item: Resource): boolean {
  return isOfKind(item, { apiVersion: 'v1', kind: 'ConfigMap' }) && item.name === 'kptfile.kpt.dev';
}

function rootKptfile(items: readonly Resource[]): Resource | undefined {
  const [root] = items
    .filter((item) => item.kind === 'Kptfile' && item.group === 'kpt.dev')
    .sort((a, b) => a.file.length - b.file.length);
  return root;
}
