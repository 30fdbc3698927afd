import type { Resource } from '../../../resource/resource.ts';
import { podSpecOf } from '../fields/pod-specs.ts';

/** A kind whose names are referred to. */
export interface Target {
  readonly group: string;
  readonly kind: string;
}

/** A field of a resource with names of resources of some kinds. */
interface NameReference {
  readonly to: readonly Target[];
  readonly path: readonly string[];
}

const CONFIG_MAP = { group: '', kind: 'ConfigMap' };
const SECRET = { group: '', kind: 'Secret' };
const SERVICE = { group: '', kind: 'Service' };
const SERVICE_ACCOUNT = { group: '', kind: 'ServiceAccount' };
const CLAIM = { group: '', kind: 'PersistentVolumeClaim' };
const VOLUME = { group: '', kind: 'PersistentVolume' };
const STORAGE_CLASS = { group: 'storage.k8s.io', kind: 'StorageClass' };
const PRIORITY_CLASS = { group: 'scheduling.k8s.io', kind: 'PriorityClass' };
const RBAC = 'rbac.authorization.k8s.io';
const ADMISSION = 'admissionregistration.k8s.io';

/** Below the specification of pods. */
const IN_PODS: readonly NameReference[] = [
  reference(CONFIG_MAP, 'volumes/configMap/name'),
  reference(CONFIG_MAP, 'volumes/projected/sources/configMap/name'),
  reference(SECRET, 'volumes/secret/secretName'),
  reference(SECRET, 'volumes/projected/sources/secret/name'),
  reference(SECRET, 'imagePullSecrets/name'),
  reference(CLAIM, 'volumes/persistentVolumeClaim/claimName'),
  reference(SERVICE_ACCOUNT, 'serviceAccountName'),
  reference(PRIORITY_CLASS, 'priorityClassName'),
  ...['containers', 'initContainers', 'ephemeralContainers'].flatMap((containers) => [
    reference(CONFIG_MAP, `${containers}/env/valueFrom/configMapKeyRef/name`),
    reference(CONFIG_MAP, `${containers}/envFrom/configMapRef/name`),
    reference(SECRET, `${containers}/env/valueFrom/secretKeyRef/name`),
    reference(SECRET, `${containers}/envFrom/secretRef/name`),
  ]),
];

/** By group and kind. */
const IN_KINDS: ReadonlyMap<string, readonly NameReference[]> = new Map([
  [
    'autoscaling/HorizontalPodAutoscaler',
    [
      {
        to: [
          { group: '', kind: 'ReplicationController' },
          ...['Deployment', 'ReplicaSet', 'StatefulSet'].map((kind) => ({ group: 'apps', kind })),
        ],
        path: ['spec', 'scaleTargetRef', 'name'],
      },
    ],
  ],
  ['/Node', [reference(CONFIG_MAP, 'spec/configSource/configMap/name')]],
  ['/ServiceAccount', [reference(SECRET, 'imagePullSecrets/name'), reference(SECRET, 'secrets/name')]],
  [
    '/PersistentVolume',
    [reference(SECRET, 'spec/azureFile/secretName'), reference(STORAGE_CLASS, 'spec/storageClassName')],
  ],
  ['/PersistentVolumeClaim', [reference(VOLUME, 'spec/volumeName'), reference(STORAGE_CLASS, 'spec/storageClassName')]],
  [
    'storage.k8s.io/StorageClass',
    ['secretName', 'adminSecretName', 'userSecretName', 'secretRef'].map((key) =>
      reference(SECRET, `parameters/${key}`),
    ),
  ],
  [
    'apps/StatefulSet',
    [
      reference(SERVICE, 'spec/serviceName'),
      reference(STORAGE_CLASS, 'spec/volumeClaimTemplates/spec/storageClassName'),
    ],
  ],
  ...['networking.k8s.io', 'extensions'].map((group): [string, readonly NameReference[]] => [
    `${group}/Ingress`,
    [
      reference(SECRET, 'spec/tls/secretName'),
      reference(SERVICE, 'spec/rules/http/paths/backend/service/name'),
      reference(SERVICE, 'spec/rules/http/paths/backend/serviceName'),
      reference(SERVICE, 'spec/defaultBackend/service/name'),
      reference(SERVICE, 'spec/backend/serviceName'),
      reference({ group: 'networking.k8s.io', kind: 'IngressClass' }, 'spec/ingressClassName'),
      ...[
        'ingress.kubernetes.io/auth-secret',
        'nginx.ingress.kubernetes.io/auth-secret',
        'nginx.ingress.kubernetes.io/auth-tls-secret',
      ].map((key) => ({ to: [SECRET], path: ['metadata', 'annotations', key] })),
      { to: [CONFIG_MAP], path: ['metadata', 'annotations', 'nginx.ingress.kubernetes.io/fastcgi-params-configmap'] },
    ],
  ]),
  ['apiregistration.k8s.io/APIService', [reference(SERVICE, 'spec/service/name')]],
  [`${ADMISSION}/ValidatingWebhookConfiguration`, [reference(SERVICE, 'webhooks/clientConfig/service/name')]],
  [`${ADMISSION}/MutatingWebhookConfiguration`, [reference(SERVICE, 'webhooks/clientConfig/service/name')]],
  [
    `${ADMISSION}/ValidatingAdmissionPolicyBinding`,
    [reference({ group: ADMISSION, kind: 'ValidatingAdmissionPolicy' }, 'spec/policyName')],
  ],
  ...['RoleBinding', 'ClusterRoleBinding'].map((kind): [string, readonly NameReference[]] => [
    `${RBAC}/${kind}`,
    [
      { to: ['Role', 'ClusterRole'].map((role) => ({ group: RBAC, kind: role })), path: ['roleRef', 'name'] },
      reference(SERVICE_ACCOUNT, 'subjects/name'),
    ],
  ]),
  ...['Role', 'ClusterRole'].map((kind): [string, readonly NameReference[]] => [
    `${RBAC}/${kind}`,
    [{ to: [CONFIG_MAP, SECRET, VOLUME], path: ['rules', 'resourceNames'] }],
  ]),
]);

/** Returns the fields of a resource that may contain names of other resources, for the kinds of Kubernetes. */
export function nameReferencesOf(resource: Resource): readonly NameReference[] {
  const own = IN_KINDS.get(`${resource.group}/${resource.kind}`) ?? [];
  const base = podSpecOf(resource);
  return base === undefined ? own : [...own, ...IN_PODS.map(({ to, path }) => ({ to, path: [...base, ...path] }))];
}

function reference(to: Target, path: string): NameReference {
  return { to: [to], path: path.split('/') };
}
