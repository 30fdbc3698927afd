import type { Resource } from '../../../resource/resource.ts';

const TEMPLATE = ['spec', 'template'];
const JOB_TEMPLATE = ['spec', 'jobTemplate'];

const POD_TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map([
  ['PodTemplate', ['template']],
  ['ReplicationController', TEMPLATE],
  ['apps/Deployment', TEMPLATE],
  ['apps/ReplicaSet', TEMPLATE],
  ['apps/DaemonSet', TEMPLATE],
  ['apps/StatefulSet', TEMPLATE],
  ['extensions/Deployment', TEMPLATE],
  ['extensions/ReplicaSet', TEMPLATE],
  ['extensions/DaemonSet', TEMPLATE],
  ['batch/Job', TEMPLATE],
  ['batch/CronJob', [...JOB_TEMPLATE, 'spec', 'template']],
  ['serving.knative.dev/Service', TEMPLATE],
]);

/** Returns the path of the pod template in a resource of a Kubernetes kind. */
export function podTemplateOf({ group, kind }: Resource): readonly string[] | undefined {
  return POD_TEMPLATES.get(group === '' ? kind : `${group}/${kind}`);
}

/** The place of the pod specification in a resource of a Kubernetes kind. */
export function podSpecOf(resource: Resource): readonly string[] | undefined {
  if (resource.kind === 'Pod' && resource.group === '') return ['spec'];
  const template = podTemplateOf(resource);
  return template === undefined ? undefined : [...template, 'spec'];
}
