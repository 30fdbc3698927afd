import type { KrmFunction } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import { type FieldSpec, fieldSpecsAt, placesOf, selects } from './support/fields/field-spec.ts';
import {
  CONFIG_MAP,
  configOf,
  invalidConfig,
  isOfKind,
  KPT_FUNCTIONS,
  textsAt,
} from './support/fields/function-config.ts';
import { setEntries } from './support/fields/set-labels-in.ts';
import { fieldText } from './support/fields/walk-fields.ts';
import { sortedTexts } from './support/text/sorted-texts.ts';

const SET_ANNOTATIONS = ['SetAnnotations', 'SetAnnotationConfig'].map((kind) => ({ apiVersion: KPT_FUNCTIONS, kind }));

const TEMPLATE = ['spec', 'template', 'metadata', 'annotations'];
const JOB_TEMPLATE = ['spec', 'jobTemplate'];

const DEFAULT_FIELDS: readonly FieldSpec[] = [
  { path: ['metadata', 'annotations'], create: true },
  { group: '', kind: 'ReplicationController', path: TEMPLATE, create: true },
  ...['apps', 'extensions'].flatMap((group) =>
    ['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet'].map((kind) => ({
      group,
      kind,
      path: TEMPLATE,
      create: true,
    })),
  ),
  { group: 'batch', kind: 'Job', path: TEMPLATE, create: true },
  { group: 'batch', kind: 'CronJob', path: [...JOB_TEMPLATE, 'metadata', 'annotations'], create: true },
  { group: 'batch', kind: 'CronJob', path: [...JOB_TEMPLATE, ...TEMPLATE], create: true },
];

export const setAnnotations: KrmFunction = {
  name: 'set-annotations',
  doc: {
    summary: 'Sets annotations of the resources of a package and of the pods and jobs that they make.',
    description: [
      'Sets every annotation in `metadata.annotations` of every resource, local-config resources and Kptfiles included, and in the templates of Deployment, ReplicaSet, DaemonSet, StatefulSet, ReplicationController, Job and CronJob.',
      'The annotations are the data of a ConfigMap, or `annotations` of a SetAnnotations, which may name more mappings to set them in by `additionalAnnotationFields`: `path` (`spec/list[]/annotations`), and `group`, `version`, `kind` of the resources, and `create` for a field that may be missing.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: set-annotations:v0.1.4\n      configMap:\n        owner: team-blue\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\nmetadata:\n  name: annotations\nannotations:\n  owner: team-blue\nadditionalAnnotationFields:\n  - path: data/selector/annotations\n    kind: MyOwnKind\n    create: true\n',
    ],
    differences: [
      'Results have the severity `info` and name the resource.',
      'Only the workload kinds of Kubernetes are handled, not kinds of the same name in other groups.',
    ],
  },
  run({ items, results, config: given }) {
    const config = configOf({ items, results, config: given }, 'set-annotations', [CONFIG_MAP, ...SET_ANNOTATIONS]);
    const isMap = isOfKind(config, CONFIG_MAP);
    const annotations = sortedTexts(textsAt(config, [isMap ? 'data' : 'annotations']));
    if (annotations.size === 0) throw invalidConfig(config, 'input annotation list cannot be empty');
    const more = ['additionalAnnotationFields', 'fieldSpecs'].flatMap((field) =>
      isMap ? [] : fieldSpecsAt(config, field),
    );
    const message = `set annotations: ${JSON.stringify(Object.fromEntries(annotations))}`;
    const before = results.length;
    for (const item of items) {
      for (const spec of [...DEFAULT_FIELDS, ...more]) {
        if (!selects(spec, item)) continue;
        for (const place of placesOf(item, spec.path, spec.create)) {
          setEntries(item, place, annotations, true);
          results.push(resultFor('info', message, item, fieldText(place)));
        }
      }
    }
    if (results.length === before) results.push({ message: 'no annotations applied', severity: 'info' });
  },
};
