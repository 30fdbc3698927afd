import { type KubeApi, STRATEGIC_PATCH } from '../../support/api/kube-api.ts';
import { NAMESPACE } from './sluice-serve.ts';

export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
export const LEADER_LABEL = 'sluice.dev/leader';
const NODES = '/api/v1/nodes';
export const NODE = 'node-1';

/** Creates the node of the pods: an EndpointSlice has only pods of known nodes. */
export async function createNode(admin: KubeApi): Promise<void> {
  const { status, text } = await admin.post(NODES, { metadata: { name: NODE } });
  if (status !== 201) throw new Error(text);
  await reportNode(admin);
}

/** Reports that kubelet works. Without this the pods of the node become not ready within a minute. */
export async function reportNode(admin: KubeApi): Promise<void> {
  const condition = { type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() };
  const { status, text } = await admin.patch(
    `${NODES}/${NODE}/status`,
    { status: { conditions: [condition] } },
    STRATEGIC_PATCH,
  );
  if (status !== 200) throw new Error(text);
}

/** Creates the pod of a replica, which runs as a process of the test: here are no nodes. */
export async function createReplicaPod(
  admin: KubeApi,
  name: string,
  { labels = {}, nodeName }: { readonly labels?: Readonly<Record<string, string>>; readonly nodeName?: string } = {},
): Promise<void> {
  const securityContext = {
    ...{ runAsNonRoot: true, runAsUser: 65532, allowPrivilegeEscalation: false },
    ...{ capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } },
  };
  const ports = [{ name: 'https', containerPort: 8443 }];
  const answer = await admin.post(PODS, {
    metadata: { name, labels: { 'app.kubernetes.io/name': 'sluice', ...labels } },
    spec: {
      ...{ serviceAccountName: 'sluice', automountServiceAccountToken: false },
      ...(nodeName === undefined ? {} : { nodeName }),
      containers: [{ name: 'sluice', image: 'sluice', securityContext, ports }],
    },
  });
  if (answer.status !== 201) throw new Error(answer.text);
}

/** Reports what a kubelet reports of a pod whose container runs. */
export async function reportReplicaPod(
  admin: KubeApi,
  name: string,
  report: { readonly ready: boolean; readonly ip: string },
) {
  const condition = (type: string) => ({ type, status: report.ready ? 'True' : 'False' });
  const conditions = [condition('Ready'), condition('ContainersReady')];
  const status = { phase: 'Running', conditions, podIP: report.ip, podIPs: [{ ip: report.ip }] };
  const { status: code, text } = await admin.patch(`${PODS}/${name}/status`, { status }, STRATEGIC_PATCH);
  if (code !== 200) throw new Error(text);
}

/** The names of the pods that have the label of the leader. */
export async function labelledPods(admin: KubeApi): Promise<readonly string[]> {
  const { items } = (await admin.list(`${PODS}?labelSelector=${encodeURIComponent(LEADER_LABEL)}`)).body;
  return items.map(({ metadata }) => metadata.name);
}

interface Endpoint {
  readonly targetRef: { readonly name: string };
  readonly conditions: { readonly ready?: boolean };
}

/** The names of the pods to which a Service leads. */
export async function endpointsOf(admin: KubeApi, service: string): Promise<readonly string[]> {
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const path = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices?labelSelector=${selector}`;
  const endpoints = (await admin.list(path)).body.items.flatMap(
    (slice) => (slice.endpoints ?? []) as readonly Endpoint[],
  );
  return endpoints.filter(({ conditions }) => conditions.ready === true).map(({ targetRef }) => targetRef.name);
}
