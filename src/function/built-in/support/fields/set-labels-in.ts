import type { FieldPath, Resource } from '../../../resource/resource.ts';
import { type FieldSpec, placesOf, selects } from './field-spec.ts';
import { podTemplateOf } from './pod-specs.ts';

const WORKLOADS = ['apps', 'extensions'].flatMap((group) =>
  ['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet'].map((kind) => ({ group, kind })),
);

const SELECTOR = ['spec', 'selector', 'matchLabels'];
const TERM = ['labelSelector', 'matchLabels'];

/** Selectors, which get the labels, or without `create` only new values of existing labels. */
const SELECTORS: readonly FieldSpec[] = [
  { group: '', kind: 'Service', path: ['spec', 'selector'], create: true },
  { group: '', kind: 'ReplicationController', path: ['spec', 'selector'], create: true },
  ...WORKLOADS.map((workload) => ({ ...workload, path: SELECTOR, create: true })),
  { group: 'apps', kind: 'StatefulSet', path: ['spec', 'volumeClaimTemplates', ...SELECTOR] },
  { group: 'batch', kind: 'Job', path: SELECTOR },
  { group: 'batch', kind: 'CronJob', path: ['spec', 'jobTemplate', ...SELECTOR] },
  { group: 'policy', kind: 'PodDisruptionBudget', path: SELECTOR },
  ...[['spec'], ['spec', 'ingress', 'from'], ['spec', 'egress', 'to']].map((path) => ({
    group: 'networking.k8s.io',
    kind: 'NetworkPolicy',
    path: [...path, 'podSelector', 'matchLabels'],
  })),
];

/** Selectors below the specification of pods. */
const POD_SELECTORS: readonly (readonly string[])[] = [
  ['topologySpreadConstraints', ...TERM],
  ...['podAffinity', 'podAntiAffinity'].flatMap((affinity) => [
    ['affinity', affinity, 'preferredDuringSchedulingIgnoredDuringExecution', 'podAffinityTerm', ...TERM],
    ['affinity', affinity, 'requiredDuringSchedulingIgnoredDuringExecution', ...TERM],
  ]),
];

/** Templates other than those of pods. */
const JOBS: FieldSpec = { group: 'batch', kind: 'CronJob', path: ['spec', 'jobTemplate'] };
const CLAIMS: FieldSpec = { group: 'apps', kind: 'StatefulSet', path: ['spec', 'volumeClaimTemplates'] };

export interface LabelOptions {
  /** More fields that get the labels. */
  readonly more?: readonly FieldSpec[];
  /**
   * As v0.1 of set-labels, which goes by the field specs of kustomize: creates missing templates of pods and jobs, and adds labels to
   * every existing selector.
   */
  readonly asKustomize?: boolean;
}

/**
 * Sets labels in the metadata of a resource, of the templates in it, and in its selectors; and in more fields, if some are named. Returns
 * the number of labels in them afterwards.
 */
export function setLabelsIn(
  resource: Resource,
  labels: ReadonlyMap<string, string>,
  { more = [], asKustomize = false }: LabelOptions = {},
): number {
  let count = setEntries(resource, ['metadata', 'labels'], labels, true);
  for (const spec of SELECTORS) {
    if (!selects(spec, resource)) continue;
    for (const place of placesOf(resource, spec.path, spec.create)) {
      count += setEntries(resource, place, labels, asKustomize || spec.create === true);
    }
  }
  const template = podTemplateOf(resource);
  const templates = [
    ...(selects(CLAIMS, resource) ? [CLAIMS] : []),
    ...(selects(JOBS, resource) ? [{ ...JOBS, create: asKustomize }] : []),
    ...(template === undefined ? [] : [{ path: template, create: asKustomize }]),
  ];
  for (const { path, create } of templates) {
    for (const place of placesOf(resource, path, create))
      count += setEntries(resource, [...place, 'metadata', 'labels'], labels, true);
  }
  for (const path of template === undefined ? [] : POD_SELECTORS) {
    for (const place of placesOf(resource, [...(template ?? []), 'spec', ...path]))
      count += setEntries(resource, place, labels, asKustomize);
  }
  for (const spec of more) {
    if (!selects(spec, resource)) continue;
    for (const place of placesOf(resource, spec.path, spec.create)) count += setEntries(resource, place, labels, true);
  }
  return count;
}

/** Sets entries of a mapping, all of them or only existing ones. Returns how many it has afterwards. */
export function setEntries(
  resource: Resource,
  path: FieldPath,
  entries: ReadonlyMap<string, string>,
  create: boolean,
): number {
  let count = 0;
  for (const [key, value] of entries) {
    const place = [...path, key];
    const node = resource.node(place);
    if (node === undefined && !create) continue;
    count++;
    if (node === undefined || resource.get(place) !== value) resource.set(place, value);
  }
  return count;
}
