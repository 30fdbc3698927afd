import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { ClusterRole, PolicyRule } from '../../src/server/authorization/rbac-objects.ts';
import { eventually } from '../support/api/eventually.ts';
import type { KubeObject } from '../support/api/kube-api.ts';
import { git, initBare, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { skipFor } from '../support/skip.ts';
import { applyObjects } from './support/apply-objects.ts';
import { type AuditedRequest, AuditLog } from './support/audit-log.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { readManifests } from './support/render.ts';
import { createReplicaPod, labelledPods } from './support/replica-pod.ts';
import { Installation, NAMESPACE, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const ACCOUNT = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/sluice`;
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const TARGETS = '/apis/sluice.dev/v1alpha1/namespaces/default/deliverytargets';
const DELIVERIES = '/apis/sluice.dev/v1alpha1/namespaces/default/packagedeliveries';
const NOTIFICATIONS = '/apis/sluice.dev/v1alpha1/namespaces/default/notifications';
const VARIANTS = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/packagevariants';
const SETS = '/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets';
const PLANS = '/apis/sluice.dev/v1alpha1/namespaces/default/waveplans';
const WAVE_TARGETS = '/apis/sluice.dev/v1alpha1/namespaces/default/wavetargets';
const TEMPLATES = '/apis/sluice.dev/v1alpha1/namespaces/default/analysistemplates';
const RUNS = '/apis/sluice.dev/v1alpha1/namespaces/default/analysisruns';
const POLICIES = '/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/sluice';
const CREDENTIALS = { username: 'sluice', password: 'secret' };

/** What a run of a minute does not need. */
const SELDOM: Readonly<Record<string, string>> = {
  'config.porch.kpt.dev repositories get': 'when another writer was faster than a write of the status',
  'porch.kpt.dev packagerevisions/approval update': 'never: the webhook asks for it about the writer of variants',
  ' events delete': 'after 1,000 different Events',
  ' secrets update': 'when a certificate is renewed, after 60 days',
};

const folder = temporaryFolder();
let plane: ControlPlane;
let audit: AuditLog;
let gitServer: GitServer;
let installation: Installation;
let kubeconfig: string;
let started = 0;

describe('the rights of deploy', skipFor(missing !== '' && missing), () => {
  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    audit = new AuditLog(folder.path, `system:serviceaccount:${NAMESPACE}:sluice`);
    plane = await ControlPlane.start({ programs, apiServerFlags: audit.flags });
    await installDefinitions(plane.kubeconfig);
    for (const name of ['apps.git', 'east.git']) {
      const path = join(folder.path, name);
      initBare(path);
      const commit = git(path, ['commit-tree', git(path, ['mktree']), '-m', 'first']);
      git(path, ['update-ref', 'refs/heads/main', commit]);
    }
    gitServer = await startGitServer({ root: folder.path, auth: CREDENTIALS });
    installation = await Installation.create(plane);
    kubeconfig = await accountKubeconfig();
  });
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]();
    await gitServer?.close();
    await plane?.stop();
    folder.remove();
  });

  async function tokenOf(account: string): Promise<string> {
    const answer = await installation.admin.post(`${account}/token`, { spec: {} });
    const { token } = (answer.body.status ?? {}) as { readonly token?: string };
    if (token === undefined) throw new Error(answer.text);
    return token;
  }

  /** A kubeconfig with a token of the ServiceAccount, as a pod has it. */
  async function accountKubeconfig(): Promise<string> {
    const token = await tokenOf(ACCOUNT);
    const cluster = { server: plane.url, 'certificate-authority': join(plane.folder, 'ca.crt') };
    const path = join(folder.path, 'account.kubeconfig');
    const content = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'sluice' },
      clusters: [{ name: 'sluice', cluster }],
      users: [{ name: 'sluice', user: { token } }],
      contexts: [{ name: 'sluice', context: { cluster: 'sluice', user: 'sluice' } }],
    };
    await writeFile(path, JSON.stringify(content), { mode: 0o600 });
    return path;
  }

  /** Waits until an object is ready. */
  async function ready(path: string): Promise<void> {
    await eventually(
      () => installation.admin.get(path),
      ({ body }) => {
        const { conditions = [] } = (body.status ?? {}) as { conditions?: { type: string; status: string }[] };
        return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
    );
  }

  async function start(role: 'both' | 'api' | 'controllers' = 'both'): Promise<Replica> {
    started += 1;
    const POD_NAME = `sluice-${started}`;
    await createReplicaPod(installation.admin, POD_NAME);
    const environment = { POD_NAME, POD_NAMESPACE: NAMESPACE };
    return installation.start({ kubeconfig, role, environment });
  }

  /** Installs the webhook, at the port of the Service of these tests. Resolves when Sluice has written its authorities. */
  async function installWebhook(): Promise<void> {
    const service = await installation.admin.get(`/api/v1/namespaces/${NAMESPACE}/services/sluice`);
    const [{ port }] = (service.body.spec as { readonly ports: readonly [{ readonly port: number }] }).ports;
    const manifests = readManifests('components/webhook/webhook', 'components/webhook/webhook-roles');
    const atPort = JSON.stringify(manifests).replaceAll('"port":443', `"port":${port}`);
    expect(await applyObjects(installation.admin, JSON.parse(atPort) as KubeObject[])).toEqual([]);
    await eventually(
      () => installation.admin.get(WEBHOOKS),
      ({ text: configuration }) => configuration.match(/"caBundle"/g)?.length === 2,
    );
  }

  /** Reads the metrics as Prometheus does. */
  async function expectMetrics({ port }: Replica): Promise<void> {
    const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'monitoring' } };
    const roles = readManifests('components/monitoring/prometheus-roles');
    await applyObjects(installation.admin, [namespace, ...roles] as KubeObject[]);
    const token = await tokenOf(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/sluice-metrics`);
    const secret = await installation.admin.get(`/api/v1/namespaces/${NAMESPACE}/secrets/sluice-serving-cert`);
    const { 'ca.crt': ca = '' } = secret.body.data as { 'ca.crt'?: string };
    const options = { host: '127.0.0.1', port, path: '/metrics', servername: 'sluice.sluice-system.svc' };
    const headers = { authorization: `Bearer ${token}` };
    const call = request({ ...options, ca: Buffer.from(ca, 'base64'), headers }).end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    expect(await text(response)).toContain('leader_election_master_status{name="sluice"} 1\n');
  }

  /** How often each Event of the broken Repository was recorded. */
  async function broken(): Promise<readonly number[]> {
    const path = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dbroken';
    return (await installation.admin.list(path)).body.items.map(({ count }) => Number(count));
  }

  test('are enough for everything that Sluice does: no request is forbidden', async () => {
    const leader = await start();
    await leader.leading();
    await installation.served();
    await installWebhook();
    const rolebinding = {
      metadata: { name: 'sluice-git-credentials' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sluice-git-credentials' },
      subjects: [{ kind: 'ServiceAccount', name: 'sluice', namespace: NAMESPACE }],
    };
    await create('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', rolebinding);
    await create('/api/v1/namespaces/default/secrets', { metadata: { name: 'git' }, stringData: CREDENTIALS });
    await create('/api/v1/namespaces/default/configmaps', {
      metadata: { name: 'people' },
      data: { allowed_signers: '' },
    });
    const repo = (name: string) => ({
      repo: `${gitServer.url}/${name}.git`,
      branch: 'main',
      secretRef: { name: 'git' },
    });
    await create(REPOSITORIES, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository' },
      metadata: { name: 'apps', annotations: { 'sluice.dev/allowed-signers': 'people' } },
      spec: { type: 'git', deployment: true, git: repo('apps') },
    });
    await ready(`${REPOSITORIES}/apps`);
    // Both replicas report the same about it.
    await create(REPOSITORIES, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'broken' } },
      spec: { type: 'git', git: { ...repo('apps'), secretRef: { name: 'missing' } } },
    });
    await create(NOTIFICATIONS, {
      ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'Notification', metadata: { name: 'chat' } },
      spec: { events: [{}], webhook: { url: `${gitServer.url}/chat`, secretRef: { name: 'git', key: 'password' } } },
    });
    await create(TARGETS, {
      ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', metadata: { name: 'east' } },
      spec: { selector: {}, git: repo('east') },
    });
    await publish('web');
    const targets = (...packageNames: string[]) => [{ repositories: [{ name: 'apps', packageNames }] }];
    await create(SETS, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'fleet' } },
      spec: { upstream: { repo: 'apps', package: 'web' }, targets: targets('web-a', 'web-b') },
    });
    for (const name of ['web-a', 'web-b']) await ready(`${VARIANTS}/fleet-apps-${name}`);
    const fewer = { spec: { targets: targets('web-a') } };
    expect((await installation.admin.patch(`${SETS}/fleet`, fewer)).status).toBe(200);
    await eventually(
      () => installation.admin.list(VARIANTS),
      ({ body: { items } }) => items.length === 1,
    );
    await create(SETS, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'clusters' } },
      spec: {
        upstream: { repo: 'apps', package: 'web' },
        targets: [{ objectSelector: { apiVersion: 'infra.nephio.org/v1alpha1', kind: 'WorkloadCluster' } }],
      },
    });
    await rollOut();
    await create(REVISIONS, draft('unused'));
    expect((await installation.admin.delete(`${REVISIONS}/apps.unused.v1`)).status).toBe(200);
    await ready(`${TARGETS}/east`);
    const delivered = () => git(join(folder.path, 'east.git'), ['ls-tree', '-r', '--name-only', 'main']);
    await eventually(
      async () => delivered(),
      (files) => files.includes('web'),
    );

    // The second replica takes over what the first one began.
    const standby = await start();
    await standby.logged(/leads/);
    expect(await leader.stop()).toBe(0);
    await standby.leading();
    await installation.served();
    await expectMetrics(standby);
    await eventually(
      () => labelledPods(installation.admin),
      (names) => names.join() === 'sluice-2',
    );
    await publish('shop');
    await eventually(
      async () => delivered(),
      (files) => files.includes('shop'),
    );
    // Objects of packages are changed with the directory, and deleted with what the target no longer selects.
    const change = { spec: { selector: { packages: ['shop'] }, git: { ...repo('east'), directory: 'clusters' } } };
    expect((await installation.admin.patch(`${TARGETS}/east`, change)).status).toBe(200);
    await eventually(
      () => installation.admin.list(DELIVERIES),
      ({ body: { items } }) => {
        const folders = items.map(({ status }) => (status as { readonly folder?: string }).folder);
        return folders.join() === 'clusters/shop';
      },
    );
    await eventually(broken, (counts) => counts.some((count) => count > 1));
    const forge = { provider: 'gitea', api: `${gitServer.url}/api/v1`, secretRef: { name: 'git', key: 'password' } };
    await create(POLICIES, {
      ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'merged' } },
      spec: {
        // One that does not exist is reported in the status of the policy.
        selector: { repositories: ['apps', 'unknown'] },
        review: { forge, publishOn: 'merge', userPullRequests: 'ignore' },
      },
    });
    await eventually(
      () => installation.admin.get(`${REPOSITORIES}/apps`),
      ({ body }) => (body.status as { mergePublication?: unknown[] } | undefined)?.mergePublication?.length === 1,
    );
    await eventually(
      () => installation.admin.get(`${POLICIES}/merged`),
      ({ body }) => body.status !== undefined,
    );
    expect(await standby.stop()).toBe(0);

    // Each with a process of its own.
    const divided = [await start('api'), await start('controllers')];
    for (const replica of divided) await replica.leading();
    await installation.served();
    for (const replica of divided) expect(await replica.stop()).toBe(0);

    const refused = audit.requests().filter(({ responseStatus }) => responseStatus?.code === 403);
    expect(refused.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
  });

  test('are no more than that: each one was used', () => {
    const roles = readManifests('base/roles').filter(({ kind }) => kind.endsWith('Role')) as unknown as ClusterRole[];
    const rules = roles.flatMap((role) => role.rules ?? []);
    const used = audit.requests().filter(({ responseStatus }) => responseStatus?.code !== 403);
    const unused = rules.flatMap((rule) => unusedIn(rule, used)).filter((right) => SELDOM[right] === undefined);
    expect(unused).toEqual([]);
  });
});

/** Creates a package with the annotation on which controllers publish it. */
function draft(packageName: string, annotations = {}) {
  return {
    ...{
      apiVersion: 'porch.kpt.dev/v1alpha1',
      kind: 'PackageRevision',
      metadata: { namespace: 'default', annotations },
    },
    spec: {
      ...{ packageName, workspaceName: 'v1', repository: 'apps', lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: packageName } }],
    },
  };
}

async function create(path: string, object: object): Promise<void> {
  const answer = await installation.admin.post(path, object);
  expect(answer.status, answer.text).toBe(201);
}

async function publish(packageName: string): Promise<void> {
  const object = draft(packageName, { 'approval.nephio.org/policy': 'always' });
  const answer = await installation.admin.post(REVISIONS, object);
  expect(answer.status, answer.text).toBe(201);
  await eventually(
    () => installation.admin.get(`${REVISIONS}/apps.${packageName}.v1`),
    ({ body }) => (body.spec as { lifecycle?: string } | undefined)?.lifecycle === 'Published',
  );
}

/** A plan whose only wave waits for its analysis, which fails because nothing answers. */
async function rollOut(): Promise<void> {
  const { admin } = installation;
  const proposed = draft('canary');
  await create(REVISIONS, proposed);
  const path = `${REVISIONS}/apps.canary.v1`;
  await eventually(
    () => admin.patch(path, { spec: { lifecycle: 'Proposed' } }),
    ({ status }) => status === 200,
  );
  await create(TEMPLATES, {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'AnalysisTemplate', metadata: { name: 'errors' } },
    spec: {
      metrics: [
        {
          name: 'errors',
          successCondition: 'result == 0',
          provider: { http: { url: `${gitServer.url}/errors`, value: 'body' } },
        },
      ],
    },
  });
  await create(PLANS, {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'WavePlan', metadata: { name: 'canary' } },
    spec: {
      selector: { repositories: ['apps'], packages: ['canary'] },
      waves: [{ name: 'all', percent: 100, analysis: [{ template: 'errors' }] }],
      verification: { condition: { type: 'Healthy' } },
    },
  });
  const named = await eventually(
    () => admin.list(WAVE_TARGETS),
    ({ body: { items } }) => items.length === 1,
  );
  // What a user is shown about a revision of a plan.
  expect((await admin.get(`${path}/explain`)).status).toBe(200);
  const target = `${WAVE_TARGETS}/${named.body.items[0]?.metadata?.name}/status`;
  const condition = {
    type: 'Healthy',
    status: 'True',
    reason: 'Test',
    message: '',
    lastTransitionTime: new Date().toISOString(),
  };
  expect((await admin.patch(target, { status: { conditions: [condition] } })).status).toBe(200);
  await eventually(
    () => admin.list(RUNS),
    ({ body: { items } }) =>
      items.some(({ status }) => (status as { phase?: string } | undefined)?.phase !== undefined),
  );
}

/** `group resource verb`, with the name if the rule has one, of what a rule grants and no request needed. */
function unusedIn(rule: PolicyRule, requests: readonly AuditedRequest[]): string[] {
  const { apiGroups = [], resources = [], resourceNames = [''], verbs } = rule;
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.flatMap((name) =>
        verbs
          .filter((verb) => !requests.some((request) => uses(request, { group, resource, name, verb })))
          .map((verb) => `${group} ${resource} ${verb}`),
      ),
    ),
  );
}

function uses(
  { verb, objectRef, requestURI }: AuditedRequest,
  right: { readonly group: string; readonly resource: string; readonly name: string; readonly verb: string },
): boolean {
  if (objectRef === undefined || verb !== right.verb || (objectRef.apiGroup ?? '') !== right.group) return false;
  const { resource, subresource, name = '' } = objectRef;
  if ((subresource === undefined ? resource : `${resource}/${subresource}`) !== right.resource) return false;
  // A list of one object names it in a selector.
  return right.name === '' || name === right.name || requestURI.includes(encodeURIComponent(`=${right.name}`));
}
