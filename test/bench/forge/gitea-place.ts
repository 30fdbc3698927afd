import { type Gitea, OWNER } from '../../forge/support/gitea.ts';
import { type KubeApi, MERGE_PATCH } from '../../support/api/kube-api.ts';
import { forEachConcurrently, until } from './waiting.ts';

const REPOSITORY = 'packages';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const SECRET = 'the-word-of-the-webhook';

interface RepositoryObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Set at registration. */
let bobsToken = '';

/** Registers a repository of a Gitea for review by bob, with a webhook to a port of this machine. */
export async function register(gitea: Gitea, api: KubeApi, webhooks: number): Promise<void> {
  await gitea.createRepository(REPOSITORY);
  const tokens: Record<string, string> = {};
  for (const user of ['sluice', 'bob']) {
    await gitea.createWriter(user, REPOSITORY);
    tokens[user] = await gitea.createToken(user, 'bench', ['write:repository', 'write:issue', 'read:user']);
  }
  bobsToken = tokens.bob ?? '';
  const namespaced = '/api/v1/namespaces/default';
  const secrets = { forge: { username: 'sluice', token: tokens.sluice }, webhook: { token: SECRET } };
  for (const [name, stringData] of Object.entries(secrets))
    await created(api, `${namespaced}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData });
  await created(api, '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name: 'bob' } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sluice:approver' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob@example.com' }],
  });
  await created(api, '/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies', {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'review' } },
    spec: {
      review: {
        forge: { provider: 'gitea', api: `${gitea.url}/api/v1`, secretRef: { name: 'forge' } },
        publishOn: 'review',
        approvers: [{ user: 'bob', subject: 'bob@example.com' }],
        labels: ['package'],
      },
    },
  });
  await created(api, '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories', {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository' },
    metadata: { name: REPOSITORY, annotations: { 'sluice.dev/webhook-secret': 'webhook' } },
    spec: { git: { repo: gitea.addressOf(REPOSITORY), secretRef: { name: 'forge' } } },
  });
  const url = `http://127.0.0.1:${webhooks}/webhooks/git/default/${REPOSITORY}`;
  const events = ['push', 'create', 'delete', 'pull_request', 'pull_request_review', 'pull_request_comment'];
  await gitea.api('POST', `/repos/${OWNER.username}/${REPOSITORY}/hooks`, {
    ...{ type: 'gitea', active: true, events },
    config: { url, secret: SECRET, content_type: 'json' },
  });
}

async function created(api: KubeApi, path: string, body: unknown): Promise<void> {
  const { status, text } = await api.send('POST', path, { body });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${text}`);
}

/** Returns the names of the revisions. */
export async function createDrafts(api: KubeApi, count: number, concurrency: number): Promise<string[]> {
  const numbers = Array.from({ length: count }, (_, index) => index);
  const path = `/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories/${REPOSITORY}`;
  await until('the repository is ready', async () => {
    const { body } = await api.send<RepositoryObject>('GET', path);
    return body.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  });
  await forEachConcurrently(numbers, concurrency, (number) =>
    created(api, REVISIONS, {
      ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision' },
      metadata: { namespace: 'default' },
      spec: {
        ...{ packageName: `app-${number}`, workspaceName: 'v1', repository: REPOSITORY },
        tasks: [{ type: 'init', init: { description: `app ${number}` } }],
      },
    }),
  );
  return numbers.map((number) => `${REPOSITORY}.app-${number}.v1`);
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

/** A review by bob. */
export async function review(gitea: Gitea, number: number, event: 'APPROVED' | 'REQUEST_CHANGES'): Promise<void> {
  const response = await fetch(`${gitea.url}/api/v1/repos/${OWNER.username}/${REPOSITORY}/pulls/${number}/reviews`, {
    method: 'POST',
    headers: { authorization: `token ${bobsToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event, body: event }),
  });
  if (!response.ok) throw new Error(`review of ${number}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

export async function openPulls(gitea: Gitea): Promise<number> {
  const { open_pr_counter: open } = (await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}`)) as {
    open_pr_counter: number;
  };
  return open;
}

/** Numbers of the open pull requests. */
export async function openNumbers(gitea: Gitea): Promise<number[]> {
  const numbers: number[] = [];
  for (let page = 1; ; page += 1) {
    const path = `/repos/${OWNER.username}/${REPOSITORY}/pulls?state=open&limit=50&page=${page}`;
    const pulls = (await gitea.api('GET', path)) as { number: number }[];
    if (pulls.length === 0) break;
    numbers.push(...pulls.map(({ number }) => number));
  }
  return numbers;
}

/** Pull requests with the label. */
export async function labelled(gitea: Gitea): Promise<number> {
  let found = 0;
  for (let page = 1; ; page += 1) {
    const path = `/repos/${OWNER.username}/${REPOSITORY}/issues?type=pulls&state=open&labels=package&limit=50&page=${page}`;
    const issues = (await gitea.api('GET', path)) as unknown[];
    found += issues.length;
    if (issues.length < 50) return found;
  }
}

/** The number of the open pull request of a revision. */
export async function numberOf(gitea: Gitea, revision: string): Promise<number> {
  const [, path = ''] = revision.split('.');
  const found = await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}/pulls/main/proposed/${path}/v1`);
  return (found as { number: number }).number;
}

/** The state of `sluice/ready` at the head, which moves when a condition is written. */
export async function stateOf(gitea: Gitea, number: number): Promise<string | undefined> {
  const pull = (await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}/pulls/${number}`)) as {
    head: { sha: string };
  };
  const path = `/repos/${OWNER.username}/${REPOSITORY}/commits/${pull.head.sha}/status`;
  const { statuses } = (await gitea.api('GET', path)) as { statuses: { context: string; status: string }[] | null };
  return statuses?.find(({ context }) => context === 'sluice/ready')?.status;
}
