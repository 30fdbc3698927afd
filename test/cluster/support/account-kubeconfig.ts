import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KubeApi } from '../../support/api/kube-api.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** How a service account reaches a control plane. */
export interface AccountAccess {
  readonly kubeconfig: string;
  readonly server: string;
  /** The authority of the server. */
  readonly authority: string;
  readonly token: string;
}

/**
 * Creates a service account in an existing namespace that may do everything, and a kubeconfig with a token of it: some clients have a
 * TokenReview of their own token, which a client certificate does not offer.
 */
export async function adminAccount(
  adminKubeconfig: string,
  name: string,
  namespace = 'default',
): Promise<AccountAccess> {
  const admin = await KubeApi.of(adminKubeconfig);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await create(admin, accounts, { metadata: { name } });
  await create(admin, `${RBAC}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace, name }],
  });
  const { body } = await create(admin, `${accounts}/${name}/token`, { spec: { expirationSeconds: 36_000 } });
  admin.close();
  const { token } = body.status as { readonly token: string };
  const { clusters } = JSON.parse(await readFile(adminKubeconfig, 'utf8')) as ClusterList;
  const cluster = clusters[0]?.cluster;
  if (cluster === undefined) throw new Error(`${adminKubeconfig} has no cluster`);
  const content = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
    clusters: [{ name: 'cluster', cluster }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: 'cluster', user: name } }],
  };
  const kubeconfig = join(dirname(adminKubeconfig), `${name}.kubeconfig`);
  await writeFile(kubeconfig, JSON.stringify(content), { mode: 0o600 });
  const authority = Buffer.from(cluster['certificate-authority-data'], 'base64').toString();
  return { kubeconfig, server: cluster.server, authority, token };
}

interface ClusterList {
  readonly clusters: readonly {
    readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string };
  }[];
}

async function create(api: KubeApi, path: string, body: object) {
  const answer = await api.post(path, body);
  if (answer.status !== 201) throw new Error(`POST ${path} returned ${answer.status}: ${answer.text}`);
  return answer;
}
