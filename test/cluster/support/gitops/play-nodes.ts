import type { KubeApi, KubeObject } from '../../../support/api/kube-api.ts';
import { applyObjects } from '../apply-objects.ts';

const NODE = 'edge-node';
const ADMISSION = 'admissionregistration.k8s.io/v1';

/** Pods with this label are not assigned to a node, so they never become ready. */
export const NEVER_READY = 'test.sluice.dev/never-ready';

/** Adds a node to which every new pod is assigned, since the control plane has no scheduler. kwok makes its pods ready at once. */
export async function playNodes(api: KubeApi): Promise<void> {
  const name = 'assign-node';
  const objects = [
    { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } },
    {
      ...{ apiVersion: ADMISSION, kind: 'MutatingAdmissionPolicy', metadata: { name } },
      spec: {
        failurePolicy: 'Fail',
        reinvocationPolicy: 'Never',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        matchConditions: [
          { name: 'unassigned', expression: '!has(object.spec.nodeName)' },
          // No node has labels.
          { name: 'no-selector', expression: '!has(object.spec.nodeSelector)' },
          {
            name: 'may-run',
            expression: `!has(object.metadata.labels) || !('${NEVER_READY}' in object.metadata.labels)`,
          },
        ],
        mutations: [
          {
            patchType: 'ApplyConfiguration',
            applyConfiguration: { expression: `Object{spec: Object.spec{nodeName: "${NODE}"}}` },
          },
        ],
      },
    },
    {
      ...{ apiVersion: ADMISSION, kind: 'MutatingAdmissionPolicyBinding', metadata: { name } },
      spec: { policyName: name },
    },
  ];
  await applyObjects(api, objects as unknown as readonly KubeObject[]);
}
