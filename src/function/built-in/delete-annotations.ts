import type { KrmFunction } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import { CONFIG_MAP, configOf, invalidConfig, textAt } from './support/fields/function-config.ts';

export const deleteAnnotations: KrmFunction = {
  name: 'delete-annotations',
  doc: {
    summary: 'Removes annotations from the resources of a package.',
    description:
      'Removes the annotations that `annotationKeys` names, with commas between, from `metadata.annotations` of every resource, local-config resources and Kptfiles included. It is configured by a ConfigMap.',
    examples: [
      'pipeline:\n  mutators:\n    - image: delete-annotations:unstable\n      configMap:\n        annotationKeys: example.org/owner,example.org/since\n',
    ],
    differences: [
      'Blanks around the keys do not count.',
      'An `annotations` field that becomes empty is removed.',
      'Without `annotationKeys` it fails, whatever else the ConfigMap holds.',
    ],
  },
  run(list) {
    const config = configOf(list, 'delete-annotations', [CONFIG_MAP]);
    const keys = (textAt(config, ['data', 'annotationKeys']) ?? '').split(',').map((key) => key.trim());
    if (keys.every((key) => key === ''))
      throw invalidConfig(config, '`data.annotationKeys` should name at least one annotation');
    const removed = list.items.flatMap((item) => {
      const found = keys.filter((key) => item.delete(['metadata', 'annotations', key]));
      if (found.length > 0 && Object.keys(Object(item.get(['metadata', 'annotations']))).length === 0)
        item.delete(['metadata', 'annotations']);
      return found.map((key) => resultFor('info', `Annotation: [${key}] removed from resource: [${item.name}]`, item));
    });
    if (removed.length === 0)
      list.results.push({
        message: 'None of the resources had the provided annotations to delete',
        severity: 'warning',
      });
    else
      list.results.push(
        { message: 'The following annotations were deleted from the resources', severity: 'info' },
        ...removed,
      );
  },
};
