import type { Resource } from '../../../resource/resource.ts';
import { textAt } from './function-config.ts';

type Scope = 'Namespaced' | 'Cluster';

const NAMESPACED: Readonly<Record<string, readonly string[]>> = {
  '': [
    ...['Binding', 'ConfigMap', 'Endpoints', 'Event', 'LimitRange', 'PersistentVolumeClaim', 'Pod', 'PodTemplate'],
    ...['ReplicationController', 'ResourceQuota', 'Secret', 'Service', 'ServiceAccount'],
  ],
  apps: ['ControllerRevision', 'DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet'],
  autoscaling: ['HorizontalPodAutoscaler', 'Scale'],
  batch: ['CronJob', 'Job'],
  'coordination.k8s.io': ['Lease', 'LeaseCandidate'],
  'discovery.k8s.io': ['EndpointSlice'],
  'events.k8s.io': ['Event'],
  extensions: ['DaemonSet', 'Deployment', 'Ingress', 'NetworkPolicy', 'ReplicaSet'],
  'networking.k8s.io': ['Ingress', 'NetworkPolicy'],
  policy: ['PodDisruptionBudget'],
  'rbac.authorization.k8s.io': ['Role', 'RoleBinding'],
  'resource.k8s.io': ['ResourceClaim', 'ResourceClaimTemplate'],
  'storage.k8s.io': ['CSIStorageCapacity'],
};

const CLUSTER: Readonly<Record<string, readonly string[]>> = {
  '': ['ComponentStatus', 'Namespace', 'Node', 'PersistentVolume'],
  'admissionregistration.k8s.io': [
    ...['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding', 'MutatingWebhookConfiguration'],
    ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding', 'ValidatingWebhookConfiguration'],
  ],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'apiregistration.k8s.io': ['APIService'],
  'certificates.k8s.io': ['CertificateSigningRequest', 'ClusterTrustBundle'],
  'flowcontrol.apiserver.k8s.io': ['FlowSchema', 'PriorityLevelConfiguration'],
  'networking.k8s.io': ['IngressClass', 'IPAddress', 'ServiceCIDR'],
  'node.k8s.io': ['RuntimeClass'],
  policy: ['PodSecurityPolicy'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding'],
  'resource.k8s.io': ['DeviceClass', 'ResourceSlice'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment', 'VolumeAttributesClass'],
};

const KNOWN: ReadonlyMap<string, Scope> = new Map([
  ...entries(NAMESPACED, 'Namespaced'),
  ...entries(CLUSTER, 'Cluster'),
]);

function entries(kinds: Readonly<Record<string, readonly string[]>>, scope: Scope): [string, Scope][] {
  return Object.entries(kinds).flatMap(([group, names]) =>
    names.map((name): [string, Scope] => [`${group}/${name}`, scope]),
  );
}

/** Determines which kinds are namespaced: those of Kubernetes, and those that the package itself defines. */
export class KindScopes {
  readonly #defined = new Map<string, Scope>();

  constructor(items: readonly Resource[]) {
    for (const item of items) {
      if (item.kind !== 'CustomResourceDefinition') continue;
      const scope = textAt(item, ['spec', 'scope']);
      if (scope !== 'Namespaced' && scope !== 'Cluster') continue;
      const [group, kind] = [textAt(item, ['spec', 'group']), textAt(item, ['spec', 'names', 'kind'])];
      this.#defined.set(`${group}/${kind}`, scope);
    }
  }

  /** Undefined for a kind that is neither one of Kubernetes nor defined in the package. */
  scopeOf({ group, kind }: Resource): Scope | undefined {
    const key = `${group}/${kind}`;
    return KNOWN.get(key) ?? this.#defined.get(key);
  }
}
