import { posix } from 'node:path';
import type { YAMLMap } from 'yaml';
import type { KrmFunction } from '../model/function.ts';
import { type FunctionResult, resultFor } from '../model/function-result.ts';
import { Resource } from '../resource/resource.ts';
import { fileOf } from '../resource/write-resources.ts';
import { graftNode } from '../yaml/graft-node.ts';
import { inheritedAnnotations, LOCAL_CONFIG } from './support/fields/inherited-annotations.ts';

const GROUP = 'blueprints.cloud.google.com';
const KIND = 'ProjectServiceSet';
const OWNER = `${GROUP}/ownerReference`;
/** Such as compute.googleapis.com. */
const SERVICE = /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+){2,}$/;

export const enableGcpServices: KrmFunction = {
  name: 'enable-gcp-services',
  doc: {
    summary: 'Makes a Config Connector Service of each Google Cloud API that a ProjectServiceSet lists.',
    description: [
      'Each ProjectServiceSet (blueprints.cloud.google.com/v1alpha1) of the package lists APIs in `spec.services`, and may name a project in `spec.projectID`. Every API becomes a Service (serviceusage.cnrm.cloud.google.com/v1beta1) beside it, with its namespace and annotations.',
      'The annotation `blueprints.cloud.google.com/ownerReference` says from which ProjectServiceSet a Service comes: those that it does not list any more are removed, and changes of the others are written over.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: enable-gcp-services:v0.1.0\n',
      'apiVersion: blueprints.cloud.google.com/v1alpha1\nkind: ProjectServiceSet\nmetadata:\n  name: proj1-service\n  annotations:\n    config.kubernetes.io/local-config: "true"\nspec:\n  services:\n    - compute.googleapis.com\n    - redis.googleapis.com\n  projectID: proj1\n',
    ],
    differences: [
      'Names of services may have letters, digits, dots and hyphens only.',
      'Comments of a Service that is there stay on the fields that stay.',
    ],
  },
  run(list) {
    const sets = list.items.filter(({ apiVersion, kind }) => apiVersion === `${GROUP}/v1alpha1` && kind === KIND);
    for (const set of sets) {
      if (set.annotation(LOCAL_CONFIG) !== 'true') set.set(['metadata', 'annotations', LOCAL_CONFIG], 'true');
      const services = servicesOf(set);
      if (typeof services === 'string') {
        list.results.push(resultFor('error', `failed to add services: ${services}`, set));
        continue;
      }
      const owned = list.items.filter((item) => item.annotation(OWNER) === ownerOf(set));
      const made = services.map((service) => serviceOf(set, service));
      const kept = new Set<Resource>();
      const results: FunctionResult[] = [];
      for (const service of made) {
        const there = owned.find((item) => !kept.has(item) && isSame(item, service));
        if (there === undefined) list.items.push(service);
        else {
          kept.add(there);
          there.document.contents = graftNode(there.root, service.root) as YAMLMap;
          there.file = service.file;
        }
        results.push(resultFor('info', `${there === undefined ? 'generated' : 'recreated'} service`, there ?? service));
      }
      const pruned = new Set(owned.filter((item) => !kept.has(item)));
      list.items = list.items.filter((item) => !pruned.has(item));
      list.results.push(...results, ...[...pruned].map((item) => resultFor('info', 'pruned service', item)));
    }
  },
};

/** The services of a set, or the problem with them. */
function servicesOf(set: Resource): string[] | string {
  const services = set.get(['spec', 'services']);
  if (!Array.isArray(services) || services.length === 0)
    return 'at least one service must be specified under `spec.services[]`';
  const wrong = services.find((service) => typeof service !== 'string' || !SERVICE.test(service));
  return wrong === undefined ? (services as string[]) : `invalid service specified: ${String(wrong)}`;
}

function serviceOf(set: Resource, service: string): Resource {
  const { name, namespace } = set;
  const project = String(set.get(['spec', 'projectID']) ?? '');
  const made = Resource.from({
    apiVersion: 'serviceusage.cnrm.cloud.google.com/v1beta1',
    kind: 'Service',
    metadata: {
      name: `${name}-${service.split('.', 1)[0]}`,
      ...(namespace === undefined ? {} : { namespace }),
      annotations: { ...inheritedAnnotations(set), [OWNER]: ownerOf(set) },
    },
    spec: { resourceID: service, ...(project === '' ? {} : { projectRef: { external: project } }) },
  });
  made.file = posix.join(posix.dirname(set.file), fileOf(made));
  return made;
}

function ownerOf({ name }: Resource): string {
  return `${GROUP}/${KIND}/${name}`;
}

function isSame(one: Resource, other: Resource): boolean {
  return (['apiVersion', 'kind', 'namespace', 'name'] as const).every((field) => one[field] === other[field]);
}
