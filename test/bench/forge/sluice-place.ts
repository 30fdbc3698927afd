import { type KubeApi, MERGE_PATCH } from '../../support/api/kube-api.ts';
import { type HostAccess, REVIEWER, WEBHOOK_SECRET } from './bench-host.ts';
import { forEachConcurrently, until } from './waiting.ts';

const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';

interface RepositoryObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** What publishes a proposal: an approving review, or the merge of its pull request. */
export type PublishOn = 'review' | 'merge';

/** Has Sluice review all proposals on a host, where the reviewer approves. */
export async function configure(
  api: KubeApi,
  { secret, provider, api: address }: HostAccess,
  publishOn: PublishOn,
): Promise<void> {
  const secrets = { forge: secret, webhook: { token: WEBHOOK_SECRET } };
  for (const [name, stringData] of Object.entries(secrets)) {
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData };
    await create(api, '/api/v1/namespaces/default/secrets', object);
  }
  const subject = `${REVIEWER}@example.com`;
  await create(api, '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name: REVIEWER } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sluice:approver' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: subject }],
  });
  await create(api, '/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies', {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'review' } },
    spec: {
      review: {
        forge: { provider, api: address, secretRef: { name: 'forge' } },
        publishOn,
        approvers: [{ user: REVIEWER, subject }],
        labels: ['package'],
      },
    },
  });
}

/** Registers a repository, and waits until it is open. */
export async function register(api: KubeApi, name: string, address: string): Promise<void> {
  await create(api, REPOSITORIES, {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository' },
    metadata: { name, annotations: { 'sluice.dev/webhook-secret': 'webhook' } },
    spec: { git: { repo: address, secretRef: { name: 'forge' } } },
  });
  await until('the repository is ready', async () => {
    const { body } = await api.send<RepositoryObject>('GET', `${REPOSITORIES}/${name}`);
    return body.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  });
}

async function create(api: KubeApi, path: string, body: unknown): Promise<void> {
  const { status, text } = await api.send('POST', path, { body });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${text}`);
}

/** Returns the names of the revisions. */
export async function createDrafts(
  api: KubeApi,
  repository: string,
  count: number,
  concurrency: number,
): Promise<string[]> {
  const numbers = Array.from({ length: count }, (_, index) => index);
  await forEachConcurrently(numbers, concurrency, (number) =>
    create(api, REVISIONS, {
      ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
      spec: {
        ...{ packageName: `app-${number}`, workspaceName: 'v1', repository },
        tasks: [{ type: 'init', init: { description: `app ${number}` } }],
      },
    }),
  );
  return numbers.map((number) => `${repository}.app-${number}.v1`);
}

/** How many revisions of a repository are published, without those that show the main branch. */
export async function countPublished(api: KubeApi, repository: string): Promise<number> {
  const selector = `spec.repository=${repository},spec.lifecycle=Published`;
  const { body } = await api.list(`${REVISIONS}?fieldSelector=${encodeURIComponent(selector)}`);
  return body.items.filter(({ spec }) => (spec as { revision?: number }).revision !== -1).length;
}

export async function propose(api: KubeApi, name: string): Promise<void> {
  const headers = { 'content-type': MERGE_PATCH };
  const body = { spec: { lifecycle: 'Proposed' } };
  // A loaded machine can need longer than the server waits; it goes on all the same.
  let { status, text } = await api.send('PATCH', `${REVISIONS}/${name}`, { body, headers });
  while ([409, 504].includes(status))
    ({ status, text } = await api.send('PATCH', `${REVISIONS}/${name}`, { body, headers }));
  if (status !== 200) throw new Error(`${name}: ${status} ${text}`);
}
