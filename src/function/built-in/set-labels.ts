import type { KrmFunction, ResourceList } from '../model/function.ts';
import { isBefore } from '../model/function-version.ts';
import type { Resource } from '../resource/resource.ts';
import { fieldSpecsAt } from './support/fields/field-spec.ts';
import { CONFIG_MAP, configOf, isOfKind, KPT_FUNCTIONS, textsAt } from './support/fields/function-config.ts';
import { setLabelsIn } from './support/fields/set-labels-in.ts';
import { sortedTexts } from './support/text/sorted-texts.ts';

const SET_LABELS = ['SetLabels', 'SetLabelConfig'].map((kind) => ({ apiVersion: KPT_FUNCTIONS, kind }));

export const setLabels: KrmFunction = {
  name: 'set-labels',
  doc: {
    summary: 'Sets labels of the resources of a package, and in the selectors that use them.',
    description: [
      'Sets every label in `metadata.labels` of every resource, in existing templates of pods, jobs and volume claims, and in the selectors of Service, ReplicationController, Deployment, ReplicaSet, DaemonSet and StatefulSet. In the selectors of Job, CronJob, PodDisruptionBudget, NetworkPolicy and volume claims, and in pod affinities and topology spread constraints, only existing labels get the new value.',
      'v0.1 also creates missing templates of pods and jobs, and adds all labels to those other selectors.',
      'Local-config resources do not change.',
      'The labels are the data of a ConfigMap, or `labels` of a SetLabels, which may name more mappings to set them in by `additionalLabelFields`: `path` (`spec/list[]/labels`), and `group`, `version`, `kind` of the resources, and `create` for a field that may be missing.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap:\n        app: web\n        tier: backend\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nmetadata:\n  name: labels\nlabels:\n  app: web\nadditionalLabelFields:\n  - path: data/selector\n    kind: MyOwnKind\n    create: true\n',
    ],
    differences: [
      'Local-config resources do not change, as since v0.2.0; v0.1 labels them.',
      'Pod affinities are set too, which v0.2 intends to do and does not.',
      '`additionalLabelFields` works as in v0.1; v0.2 removed it.',
      'Only the workload kinds of Kubernetes are handled, not kinds of the same name in other groups.',
    ],
    compared: 'v0.1.5 and v0.2.0, in part, by their sources',
  },
  run(list, { version }) {
    const config = configOf(list, 'set-labels', [CONFIG_MAP, ...SET_LABELS]);
    const labels = sortedTexts(textsAt(config, [isOfKind(config, CONFIG_MAP) ? 'data' : 'labels']));
    const more = isOfKind(config, CONFIG_MAP)
      ? []
      : [...fieldSpecsAt(config, 'additionalLabelFields'), ...fieldSpecsAt(config, 'fieldSpecs')];
    const options = { more, asKustomize: isBefore(version, '0.2.0') };
    labelResources(list, labels, (resource) => setLabelsIn(resource, labels, options));
  },
};

/** Labels all resources but local ones, and reports the number of labels. */
export function labelResources(
  { items, results }: ResourceList,
  labels: ReadonlyMap<string, string>,
  label: (resource: Resource) => number,
): void {
  const resources = items.filter((item) => !item.isLocalConfig);
  if (resources.length === 0) results.push({ message: 'no input resources', severity: 'info' });
  else if (labels.size === 0)
    results.push({ message: 'no `labels` arguments are given in FunctionConfig', severity: 'warning' });
  else {
    let count = 0;
    for (const resource of resources) count += label(resource);
    results.push({ message: `set ${count} labels in total`, severity: 'info' });
  }
}
