import type { KrmFunction } from '../model/function.ts';
import { type FunctionResult, resultFor } from '../model/function-result.ts';

export const removeLocalConfigResources: KrmFunction = {
  name: 'remove-local-config-resources',
  doc: {
    summary: 'Removes the resources that are never applied to a cluster.',
    description:
      'Removes every resource whose annotation `config.kubernetes.io/local-config` is `true`, such as configurations of functions. It needs no configuration.',
    examples: ['pipeline:\n  mutators:\n    - image: remove-local-config-resources:v0.1.0\n'],
    differences: ['In a pipeline Kptfiles stay, since every package needs one. `fn eval` removes them too.'],
  },
  run(list, { byHand = false }) {
    const removed: FunctionResult[] = [];
    list.items = list.items.filter((item) => {
      const isLocal = item.annotation('config.kubernetes.io/local-config')?.toLowerCase() === 'true';
      if (!isLocal || (item.kind === 'Kptfile' && !byHand)) return true;
      removed.push(resultFor('info', `Resource name: [${item.name}]`, item));
      return false;
    });
    if (removed.length > 0)
      list.results.push({ message: `Number of resources pruned: ${removed.length}`, severity: 'info' }, ...removed);
    else
      list.results.push({
        message: 'Found no resources to prune with the local config annotation',
        severity: 'warning',
      });
  },
};
