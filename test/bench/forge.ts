import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Gitea, OWNER, startGitea } from '../forge/support/gitea.ts';
import { giteaProgram } from '../forge/support/gitea-program.ts';
import { type KubeApi, MERGE_PATCH } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { freePort } from '../support/free-port.ts';
import { median, milliseconds, percentile, printTable, ratio } from './table.ts';

const REPOSITORY = 'packages';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const SECRET = 'the-word-of-the-webhook';
/** Requests that Sluice has under way at the same time, for one repository. */
const CONCURRENCY = 8;
const LATENCIES = 20;
const WAIT_MS = 600_000;

interface RepositoryObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Set at registration. */
let bobsToken = '';

/**
 * Proposals as pull requests on a real Gitea on loopback: all proposed at once, then reviewed by a second user; a review until its check is
 * updated through a webhook; and the requests while nothing happens. `--proposals=200` and `--idle=120` (seconds, 0 for none) choose the sizes.
 * The floor is the same requests (open, status) by a client that does nothing else, to another repository of the same Gitea.
 */
export async function forge(options: readonly string[] = []): Promise<void> {
  const count = numberOf(options, 'proposals', 200);
  const idle = numberOf(options, 'idle', 120);
  const program = await giteaProgram();
  if ('missing' in program) {
    console.log(`not measured: ${program.missing}`);
    return;
  }
  const server = await startGitea(program);
  const data = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const gitea = new Gitea(server);
  const webhooks = await freePort();
  const words = ['--allow-git-host', '127.0.0.1', '--webhook-listen', `127.0.0.1:${webhooks}`];
  const up = await RunningUp.start(data, { words });
  try {
    await register(gitea, up.api, webhooks);
    const names = await createDrafts(up.api, count);
    const before = await apiRequests(server.folder);
    const start = performance.now();
    await forEachConcurrently(names, CONCURRENCY, (name) => propose(up.api, name));
    const proposed = performance.now() - start;
    await until(async () => (await openPulls(gitea)) === count && (await labelled(gitea)) === count);
    await settled(server.folder);
    const opened = performance.now() - start;
    const afterOpening = await apiRequests(server.folder);
    const floor = await floorOf(gitea, count);

    const idleRequests = idle === 0 ? undefined : await idleFor(server.folder, idle);
    const latencies = await reviewLatencies(gitea, names.slice(0, Math.min(LATENCIES, count)));

    const beforeReviews = await apiRequests(server.folder);
    const reviewing = performance.now();
    const numbers = await numbersOf(gitea, count);
    await forEachConcurrently(numbers, CONCURRENCY, (number) => review(gitea, number, 'APPROVED'));
    await until(async () => (await openPulls(gitea)) === 0);
    await settled(server.folder);
    const published = performance.now() - reviewing;
    const afterReviews = await apiRequests(server.folder);

    const perProposal = (afterOpening - before + (afterReviews - beforeReviews)) / count;
    printTable(
      ['what', 'measured', 'aim'],
      [
        [`${count} proposals at once until proposed`, milliseconds(proposed), ''],
        [`until all have pull request and checks`, milliseconds(opened), ''],
        ['ratio to the same requests alone', ratio(opened, floor), ''],
        [`${count} reviews until all are published`, milliseconds(published), ''],
        ['requests per proposal until opened', ((afterOpening - before) / count).toFixed(1), ''],
        ['requests per proposal, opened and published', perProposal.toFixed(1), '8'],
        [
          `requests in an idle hour with ${count} open`,
          idleRequests === undefined ? 'not measured' : (idleRequests * (3600 / idle)).toFixed(0),
          '200',
        ],
        ['review until its check is updated, median', milliseconds(median(latencies)), ''],
        ['review until its check is updated, p95', milliseconds(percentile(latencies, 0.95)), '1000 ms'],
      ],
    );
  } finally {
    await up.end();
    await server.close();
    await rm(data, { recursive: true, force: true });
  }
}

function numberOf(options: readonly string[], name: string, fallback: number): number {
  const given = options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  return given === undefined ? fallback : Number(given);
}

async function register(gitea: Gitea, api: KubeApi, webhooks: number): Promise<void> {
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

async function createDrafts(api: KubeApi, count: number): Promise<string[]> {
  const numbers = Array.from({ length: count }, (_, index) => index);
  const path = `/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories/${REPOSITORY}`;
  await until(async () => {
    const { body } = await api.send<RepositoryObject>('GET', path);
    return body.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  });
  await forEachConcurrently(numbers, CONCURRENCY, (number) =>
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

async function propose(api: KubeApi, name: string): Promise<void> {
  const headers = { 'content-type': MERGE_PATCH };
  const body = { spec: { lifecycle: 'Proposed' } };
  const { status, text } = await api.send('PATCH', `${REVISIONS}/${name}`, { body, headers });
  if (status !== 200) throw new Error(`${name}: ${status} ${text}`);
}

async function review(gitea: Gitea, number: number, event: 'APPROVED' | 'REQUEST_CHANGES'): Promise<void> {
  const response = await fetch(`${gitea.url}/api/v1/repos/${OWNER.username}/${REPOSITORY}/pulls/${number}/reviews`, {
    method: 'POST',
    headers: { authorization: `token ${bobsToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event, body: event }),
  });
  if (!response.ok) throw new Error(`review of ${number}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

async function openPulls(gitea: Gitea): Promise<number> {
  const { open_pr_counter: open } = (await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}`)) as {
    open_pr_counter: number;
  };
  return open;
}

async function numbersOf(gitea: Gitea, count: number): Promise<number[]> {
  const numbers: number[] = [];
  for (let page = 1; numbers.length < count; page += 1) {
    const path = `/repos/${OWNER.username}/${REPOSITORY}/pulls?state=open&limit=50&page=${page}`;
    const pulls = (await gitea.api('GET', path)) as { number: number }[];
    if (pulls.length === 0) break;
    numbers.push(...pulls.map(({ number }) => number));
  }
  return numbers;
}

/** Pull requests with the label, which is written after the checks. */
async function labelled(gitea: Gitea): Promise<number> {
  let found = 0;
  for (let page = 1; ; page += 1) {
    const path = `/repos/${OWNER.username}/${REPOSITORY}/issues?type=pulls&state=open&labels=package&limit=50&page=${page}`;
    const issues = (await gitea.api('GET', path)) as unknown[];
    found += issues.length;
    if (issues.length < 50) return found;
  }
}

/** Requests of Sluice to the API, by the log of the host. */
async function apiRequests(folder: string): Promise<number> {
  const log = await readFile(join(folder, 'log', 'access.log'), 'utf8');
  return log.split('\n').filter((line) => line.includes(' /api/v1/') && line.includes('"sluice"')).length;
}

/** Waits until Sluice has requested nothing for three seconds. */
async function settled(folder: string): Promise<void> {
  for (let last = -1; ; ) {
    const now = await apiRequests(folder);
    if (now === last) return;
    last = now;
    await delay(3000);
  }
}

/** Requests within some seconds, once Sluice polls as in quiet times. */
async function idleFor(folder: string, seconds: number): Promise<number> {
  console.log('waiting for quiet times (5 minutes without a change)');
  await delay(330_000);
  const before = await apiRequests(folder);
  await delay(seconds * 1000);
  return (await apiRequests(folder)) - before;
}

async function reviewLatencies(gitea: Gitea, names: readonly string[]): Promise<number[]> {
  const latencies: number[] = [];
  for (const name of names) {
    const [, path = ''] = name.split('.');
    const head = `proposed/${path}/v1`;
    const found = (await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}/pulls/main/${head}`)) as {
      number: number;
    };
    const start = performance.now();
    await review(gitea, found.number, 'REQUEST_CHANGES');
    await until(async () => (await stateOf(gitea, found.number)) === 'failure', 5);
    latencies.push(performance.now() - start);
    await review(gitea, found.number, 'APPROVED');
  }
  return latencies;
}

/** The state of `sluice/ready` at the head, which moves when a condition is written. */
async function stateOf(gitea: Gitea, number: number): Promise<string | undefined> {
  const pull = (await gitea.api('GET', `/repos/${OWNER.username}/${REPOSITORY}/pulls/${number}`)) as {
    head: { sha: string };
  };
  const path = `/repos/${OWNER.username}/${REPOSITORY}/commits/${pull.head.sha}/status`;
  const { statuses } = (await gitea.api('GET', path)) as { statuses: { context: string; status: string }[] | null };
  return statuses?.find(({ context }) => context === 'sluice/ready')?.status;
}

/** Milliseconds of the same requests without Sluice: for each branch a pull request and a status, with the label. */
async function floorOf(gitea: Gitea, count: number): Promise<number> {
  const repository = 'floor';
  await gitea.createRepository(repository);
  const base = `/repos/${OWNER.username}/${repository}`;
  const label = (await gitea.api('POST', `${base}/labels`, { name: 'package', color: '#1d76db' })) as { id: number };
  const numbers = Array.from({ length: count }, (_, index) => index);
  const commits = new Map<number, string>();
  for (const number of numbers) {
    const made = (await gitea.api('POST', `${base}/contents/app-${number}/file`, {
      ...{ content: Buffer.from(`${number}`).toString('base64'), branch: 'main', new_branch: `app-${number}` },
    })) as { commit: { sha: string } };
    commits.set(number, made.commit.sha);
  }
  const start = performance.now();
  await forEachConcurrently(numbers, CONCURRENCY, async (number) => {
    const pull = (await gitea.api('POST', `${base}/pulls`, {
      ...{ head: `app-${number}`, base: 'main', title: `app ${number}`, body: 'x'.repeat(2000) },
    })) as { number: number };
    const status = { context: 'sluice/ready', state: 'success', description: 'It has no gates' };
    await gitea.api('POST', `${base}/statuses/${commits.get(number)}`, status);
    await gitea.api('POST', `${base}/issues/${pull.number}/labels`, { labels: [label.id] });
  });
  return performance.now() - start;
}

async function until(isDone: () => Promise<boolean>, everyMs = 200): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error('it did not come to pass within ten minutes');
    await delay(everyMs);
  }
}

async function forEachConcurrently<Item>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
