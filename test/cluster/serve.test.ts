import { globSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../support/api/kube-api.ts';
import { git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation, NAMESPACE, type Replica } from './support/sluice-serve.ts';
import { installWebhook, WEBHOOKS } from './support/webhook-server.ts';

const missing = inject('serverMissing');
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** So that a killed leader is replaced soon. */
const QUICK_ELECTION = ['--lease-duration', '8s', '--renew-deadline', '6s', '--retry-period', '1s'];

const folder = temporaryFolder();
const repository = join(folder.path, 'apps.git');
let plane: ControlPlane;
let gitServer: GitServer;
let installation: Installation;
let leader: Replica;
let kubectl: Kubectl;

/** A draft with the upstream-less package of `init`. */
function draft(name: string, workspaceName = 'v1') {
  return {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
    spec: {
      ...{ packageName: name, workspaceName, repository: 'apps', lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: name } }],
    },
  };
}

async function step(name: string, lifecycle: string, api = installation.admin) {
  const path = `${REVISIONS}/${name}`;
  const { body } = await api.get(path);
  const spec = { ...(body.spec as object), lifecycle };
  const approval = lifecycle === 'Published' ? '/approval' : '';
  return api.put(`${path}${approval}`, { ...body, spec });
}

/** The refs in the mirror of a replica; none before it is there. */
function mirroredRefs(cacheDir: string): readonly string[] {
  const [mirror] = globSync('git/*.git', { cwd: cacheDir });
  return mirror === undefined ? [] : [...refsOf(join(cacheDir, mirror)).keys()];
}

function lifecycleOf({ spec }: KubeObject): string {
  return (spec as { readonly lifecycle: string }).lifecycle;
}

describe('sluice serve', skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')), () => {
  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    plane = await ControlPlane.start({ programs });
    await installDefinitions(plane.kubeconfig);
    initBare(repository);
    const tree = git(repository, ['mktree']);
    const commit = git(repository, ['commit-tree', tree, '-m', 'first']);
    git(repository, ['update-ref', 'refs/heads/main', commit]);
    gitServer = await startGitServer({ root: folder.path });
    installation = await Installation.create(plane);
    leader = await installation.start({ options: QUICK_ELECTION });
    await leader.leading();
    await installation.served();
    kubectl = new Kubectl(plane.kubeconfig, join(folder.path, 'cache'));
    const { status, text } = await installation.admin.post(REPOSITORIES, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'apps' } },
      spec: { type: 'git', git: { repo: `${gitServer.url}/apps.git`, branch: 'main' } },
    });
    if (status !== 201) throw new Error(text);
    await eventually(
      () => installation.admin.get(`${REPOSITORIES}/apps`),
      ({ body }) => JSON.stringify(body.status ?? {}).includes('"reason":"Ready"'),
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${leader.lines.join('\n')}`, { cause: error });
    });
  });
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]();
    await gitServer?.close();
    await plane?.stop();
    folder.remove();
  });

  test('serves packages through the aggregator until they are published', async () => {
    const { status, text } = await installation.admin.post(REVISIONS, draft('web'));
    expect({ status, text }).toMatchObject({ status: 201 });
    expect(await kubectl.ok('get packagerevisions --no-headers')).toMatch(/^apps\.web\.v1 +web +v1 .*Draft +apps$/);
    expect((await step('apps.web.v1', 'Proposed')).status).toBe(200);
    expect((await step('apps.web.v1', 'Published')).status).toBe(200);
    const { body } = await installation.admin.get(`${REVISIONS}/apps.web.v1`);
    expect(lifecycleOf(body)).toBe('Published');
    expect(refsOf(repository).has('refs/tags/web/v1')).toBe(true);
    expect(await kubectl.ok('api-resources --api-group=porch.kpt.dev --no-headers')).toMatch(/^packagerevisions /m);
    expect(await kubectl.ok('explain rpkg.spec.lifecycle')).toContain('DeletionProposed');
  });

  test('its controllers propose and approve a package with the annotation of Nephio', async () => {
    const annotated = { ...draft('auto'), metadata: { annotations: { 'approval.nephio.org/policy': 'always' } } };
    expect((await installation.admin.post(REVISIONS, annotated)).status).toBe(201);
    await eventually(
      () => installation.admin.get(`${REVISIONS}/apps.auto.v1`),
      ({ body }) => lifecycleOf(body) === 'Published',
    );
    await leader.logged(/Published/);
  });

  test('a user who may write packages proposes, and cannot approve', async () => {
    await installation.admin.post(`${RBAC}/clusterroles`, {
      metadata: { name: 'writer' },
      rules: [{ apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions'], verbs: ['*'] }],
    });
    await installation.admin.post(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'writer' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'writer' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'wendy' }],
    });
    const wendy = await KubeApi.of(await plane.userKubeconfig('wendy'));
    await eventually(
      () => wendy.post(REVISIONS, draft('shop')),
      ({ status }) => status === 201,
    );
    expect((await step('apps.shop.v1', 'Proposed', wendy)).status).toBe(200);
    const refused = await step('apps.shop.v1', 'Published', wendy);
    expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('packagerevisions/approval') });
    wendy.close();
  });

  test('the cluster refuses what it would refuse, from when its webhook is installed', async () => {
    const apiService = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev';
    const { spec } = (await installation.admin.get(apiService)).body as unknown as {
      spec: { service: { port: number } };
    };
    await installWebhook(installation.admin, spec.service.port, { kind: 'Group', name: 'system:unauthenticated' });
    const local = {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'local' } },
      spec: { type: 'git', git: { repo: 'https://10.0.0.1/a.git' } },
    };
    const refused = await eventually(
      () => installation.admin.post(`${REPOSITORIES}?dryRun=All`, local),
      ({ status }) => status === 403,
    );
    expect(refused.text).toContain('denied the request: cannot connect to remote https://10.0.0.1/a.git');
    const fine = { ...local, spec: { type: 'git', git: { repo: `${gitServer.url}/other.git` } } };
    expect(await installation.admin.post(`${REPOSITORIES}?dryRun=All`, fine)).toMatchObject({ status: 201 });
    expect((await installation.admin.delete(`${WEBHOOKS}/sluice`)).status).toBe(200);
  });

  test('its key is a Secret, and metrics need a right', async () => {
    const secret = await installation.admin.get(`/api/v1/namespaces/${NAMESPACE}/secrets/sluice-signing-key`);
    expect(secret.status).toBe(200);
    expect((await leader.probe('/metrics')).status).toBe(401);
    expect((await leader.probe('/readyz')).text).toBe('ok');
  });

  test('a standby takes over from a leader that stops, and versions of the two are never the same', async () => {
    const first = installation.replicas.at(-1) as Replica;
    const cacheDir = join(folder.path, 'standby');
    const second = await installation.start({ options: QUICK_ELECTION, cacheDir });
    await second.live();
    await second.logged(/leads/);
    await second.warm();
    expect(await second.probe('/apis/porch.kpt.dev/v1alpha1')).toMatchObject({
      status: 503,
      text: expect.stringContaining('does not lead'),
    });
    // It mirrors what the leader writes, and pushes nothing itself: the request of the leader is the only one.
    await eventually(
      async () => mirroredRefs(cacheDir),
      (refs) => refs.includes('refs/tags/web/v1'),
    );
    const pushes = () => gitServer.requests.filter(({ method, url }) => method === 'POST' && /receive-pack/.test(url));
    const pushesBefore = pushes().length;
    expect((await installation.admin.post(REVISIONS, draft('seen'))).status).toBe(201);
    await eventually(
      async () => mirroredRefs(cacheDir),
      (refs) => refs.includes('refs/heads/drafts/seen/v1'),
    );
    expect(pushes().length).toBe(pushesBefore + 1);
    const path = `${REVISIONS}/apps.web.v1`;
    const before = (await installation.admin.get(path)).body;
    const listed = (await installation.admin.list(REVISIONS)).body.metadata.resourceVersion;

    expect(await first.stop()).toBe(0);
    await second.leading();
    const after = await eventually(
      () => installation.admin.get(path),
      ({ status }) => status === 200,
    );
    expect(after.body.metadata.uid).toBe(before.metadata.uid);
    expect(Number(after.body.metadata.resourceVersion)).toBeGreaterThan(Number(listed));
    const old = await installation.admin.put(path, { ...before, metadata: { ...before.metadata, labels: { a: 'b' } } });
    expect(old).toMatchObject({ status: 409, body: { reason: 'Conflict' } });
    const watch = await installation.admin.get(`${REVISIONS}?watch=1&resourceVersion=${listed}&timeoutSeconds=5`);
    expect(watch.text).toMatch(/"code":410|too old|"reason":"Expired"/);
    // The publications of the first leader count for the second one.
    expect(lifecycleOf(after.body)).toBe('Published');
    expect((await installation.admin.post(REVISIONS, draft('next'))).status).toBe(201);
  });

  test('a client reads from the next leader at once what the last one has acknowledged', async () => {
    const first = installation.replicas.at(-1) as Replica;
    const second = await installation.start({ options: QUICK_ELECTION });
    await second.logged(/leads/);
    await second.warm();
    // Neither the standby nor the next leader gets an answer to a fetch until a client reads.
    const held = Promise.withResolvers<void>();
    gitServer.behaviour.holdFetch = held.promise;
    expect((await installation.admin.post(REVISIONS, draft('acknowledged'))).status).toBe(201);
    expect(await first.stop()).toBe(0);
    await second.leading();
    const listed = eventually(
      () => installation.admin.list(REVISIONS),
      ({ status }) => status === 200,
    );
    const selected = eventually(
      () => installation.admin.list(`${REVISIONS}?fieldSelector=spec.repository%3Dapps`),
      ({ status }) => status === 200,
    );
    const got = eventually(
      () => installation.admin.get(`${REVISIONS}/apps.acknowledged.v1`),
      ({ status }) => status !== 503,
    );
    await second.logged(/"event":"Serving"/);
    gitServer.behaviour.holdFetch = undefined;
    held.resolve();
    expect(await got).toMatchObject({ status: 200 });
    for (const { body } of [await listed, await selected])
      expect(body.items.map(({ metadata }) => metadata.name)).toContain('apps.acknowledged.v1');
  });

  test('a standby takes over from a leader that is killed', async () => {
    const first = installation.replicas.at(-1) as Replica;
    const second = await installation.start({ options: QUICK_ELECTION });
    await second.logged(/leads/);
    first.kill('SIGKILL');
    await second.leading();
    const { status } = await eventually(
      () => installation.admin.post(REVISIONS, draft('later')),
      (answer) => answer.status === 201,
    );
    expect(status).toBe(201);
    await eventually(
      () => step('apps.next.v1', 'Proposed'),
      (answer) => answer.status === 200,
    );
    expect((await step('apps.next.v1', 'Published')).status).toBe(200);
    expect((await installation.admin.get(`${REVISIONS}/apps.next.v1`)).body).toMatchObject({
      spec: { lifecycle: 'Published' },
    });
    expect(await second.stop()).toBe(0);
  });

  test('of two processes with a role each, one serves and the other one moves packages', async () => {
    const api = await installation.start({ role: 'api' });
    const controllers = await installation.start({ role: 'controllers' });
    await Promise.all([api.leading(), controllers.leading()]);
    expect((await controllers.probe('/apis/porch.kpt.dev/v1alpha1')).status).not.toBe(200);
    const annotated = { ...draft('split'), metadata: { annotations: { 'approval.nephio.org/policy': 'always' } } };
    await eventually(
      () => installation.admin.post(REVISIONS, annotated),
      ({ status }) => status === 201,
    );
    await eventually(
      () => installation.admin.get(`${REVISIONS}/apps.split.v1`),
      ({ body }) => lifecycleOf(body) === 'Published',
    );
    expect(await Promise.all([api.stop(), controllers.stop()])).toEqual([0, 0]);
  });
});
