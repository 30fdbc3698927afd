import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { KubeApi } from '../support/api/kube-api.ts';
import { freePort } from '../support/free-port.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { created } from './support/extension-server.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { startWebhookServer, WEBHOOKS, type WebhookServer } from './support/webhook-server.ts';

const missing = inject('serverMissing');
const NAMESPACE = '/api/v1/namespaces/team-a';
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/team-a/repositories';
const TARGETS = '/apis/sluice.dev/v1alpha1/namespaces/team-a/deliverytargets';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/team-a';
const REMOTE = 'https://git.example.com/a.git';
const ANONYMOUS = { kind: 'Group', name: 'system:unauthenticated' } as const;

async function startPlane(options: object = {}): Promise<ControlPlane> {
  const programs = await clusterPrograms(() => undefined);
  if ('missing' in programs) throw new Error(programs.missing);
  return ControlPlane.start({ programs, ...options });
}

function repository(name: string, git: object, metadata: object = {}) {
  const spec = { type: 'git', git: { repo: REMOTE, ...git } };
  return { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name, ...metadata }, spec };
}

function denied(webhook: string, message: string, code = 403, reason = 'Forbidden') {
  return expect.objectContaining({
    status: code,
    body: expect.objectContaining({
      ...{ code, reason },
      message: expect.stringMatching(new RegExp(`admission webhook "${webhook}" denied the request: .*${message}`)),
    }),
  });
}

describe('the admission webhook', skipFor(missing !== '' && missing), () => {
  let plane: ControlPlane;
  let admin: KubeApi;
  let anna: KubeApi;
  let server: WebhookServer;
  let userConfig = '';

  beforeAll(async () => {
    plane = await startPlane({ controllerManager: true });
    await installDefinitions(plane.kubeconfig);
    admin = await KubeApi.of(plane.kubeconfig);
    userConfig = await plane.userKubeconfig('anna');
    anna = await KubeApi.of(userConfig);
    server = await startWebhookServer(plane, admin, ANONYMOUS);
    await created(admin.post('/api/v1/namespaces', { metadata: { name: 'team-a' } }));
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'anna' }];
    const verbs = ['create', 'get', 'update', 'patch', 'delete', 'deletecollection'];
    const rules = [
      { apiGroups: ['sluice.dev'], resources: ['deliverytargets'], verbs },
      // Not to update: that right decides over lists of users.
      { apiGroups: ['config.porch.kpt.dev'], resources: ['repositories'], verbs: ['create', 'get', 'patch', 'delete'] },
      { apiGroups: [''], resources: ['configmaps'], verbs },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['mine'] },
    ];
    await created(admin.post(`${RBAC}/roles`, { metadata: { name: 'anna' }, rules }));
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'anna' };
    await created(admin.post(`${RBAC}/rolebindings`, { metadata: { name: 'anna' }, roleRef, subjects }));
    // The kube-apiserver has noticed the configuration and the authorities when it calls.
    await eventually(
      () => admin.post(`${REPOSITORIES}?dryRun=All`, repository('probe', { repo: 'https://10.0.0.1/a.git' })),
      ({ status }) => status === 403,
    );
  });
  afterAll(async () => {
    anna?.close();
    admin?.close();
    await server?.[Symbol.asyncDispose]();
    await plane?.stop();
  });

  test('judges by the rights of the user of the request, in dry runs too', async () => {
    const theirs = repository('theirs', { secretRef: { name: 'theirs' } });
    const message = 'the Secret team-a/theirs is sent to spec.git.repo, and User "anna" cannot read it';
    for (const query of ['', '?dryRun=All'])
      expect(await anna.post(`${REPOSITORIES}${query}`, theirs)).toEqual(denied('objects.sluice.dev', message));
    expect(await admin.post(`${REPOSITORIES}?dryRun=All`, theirs)).toMatchObject({ status: 201 });
    await created(anna.post(REPOSITORIES, repository('mine', { secretRef: { name: 'mine' } })));
    const path = `${REPOSITORIES}/mine`;
    const changed = await anna.patch(path, { spec: { git: { secretRef: { name: 'theirs' } } } });
    expect(changed).toEqual(denied('objects.sluice.dev', message));
    expect(await anna.patch(path, { spec: { description: 'mine' } })).toMatchObject({ status: 200 });
  });

  test('kubectl prints the cause', skipFor(!hasKubectl() && 'kubectl is not installed'), async () => {
    const file = join(plane.folder, 'theirs.yaml');
    await writeFile(file, JSON.stringify(repository('theirs', { secretRef: { name: 'theirs' } })));
    const kubectl = new Kubectl(userConfig, join(plane.folder, 'kubectl-cache'));
    const { code, stderr } = await kubectl.run(['create', '-n', 'team-a', '-f', file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /Error from server \(Forbidden\): error when creating .*: admission webhook "objects\.sluice\.dev" denied the request: repositories\.config\.porch\.kpt\.dev "theirs" is forbidden: the Secret/,
    );
  });

  test('refuses addresses on the machine of the server, hosts that are not permitted, and passwords', async () => {
    const local = repository('local', { repo: '/var/cache/sluice/mirrors/b.git' });
    expect(await anna.post(REPOSITORIES, local)).toEqual(
      denied('objects.sluice.dev', 'is on the machine of the server'),
    );
    expect(await admin.post(`${REPOSITORIES}?dryRun=All`, local)).toMatchObject({ status: 201 });
    const host = repository('host', { repo: 'https://169.254.169.254/latest' });
    expect(await admin.post(REPOSITORIES, host)).toEqual(denied('objects.sluice.dev', '--allow-git-host'));
    const password = repository('', { repo: 'https://me:secret@git.example.com/a.git' }, { generateName: 'team-' });
    const answer = await admin.post(REPOSITORIES, password);
    // The definition refuses it, before the webhook is called.
    const message = expect.stringMatching(/spec\.git\.repo: Forbidden: .*use secretRef/);
    expect(answer).toMatchObject({ status: 422, body: { reason: 'Invalid', message } });
    expect(answer.text).not.toContain('secret@');
  });

  test('lets only a user who may update Repositories decide what targets deliver and who users are', async () => {
    const target = (spec: object) => ({
      ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', metadata: { name: 'edge' } },
      spec: { selector: {}, git: { repo: REMOTE }, ...spec },
    });
    expect(await anna.post(TARGETS, target({ allowOutOfBand: true }))).toEqual(
      denied('objects.sluice.dev', 'spec.allowOutOfBand'),
    );
    await created(anna.post(TARGETS, target({})));
    expect(await anna.patch(`${TARGETS}/edge`, { spec: { git: { repo: 'https://git.example.com/b.git' } } })).toEqual(
      denied('objects.sluice.dev', 'spec.git.repo says which clusters'),
    );
    const list = (data: object) => ({ metadata: { name: 'people' }, data });
    const message = 'its key allowed_signers says whose signature';
    expect(await anna.post(`${NAMESPACE}/configmaps`, list({ allowed_signers: 'x' }))).toEqual(
      denied('users.sluice.dev', message),
    );
    await created(admin.post(`${NAMESPACE}/configmaps`, list({ allowed_signers: 'x' })));
    expect(await anna.delete(`${NAMESPACE}/configmaps/people`)).toEqual(denied('users.sluice.dev', message));
    expect(await anna.delete(`${NAMESPACE}/configmaps`)).toEqual(denied('users.sluice.dev', message));
    expect(await anna.patch(`${NAMESPACE}/configmaps/people`, { metadata: { labels: { a: 'b' } } })).toMatchObject({
      status: 200,
    });
  });

  test('is not called for other ConfigMaps, and does not delay the end of a namespace', async () => {
    const { reviews } = server;
    await created(anna.post(`${NAMESPACE}/configmaps`, { metadata: { name: 'other' }, data: { text: 'x' } }));
    expect(server.reviews).toBe(reviews);
    await created(admin.post('/api/v1/namespaces', { metadata: { name: 'ending' } }));
    const list = { metadata: { name: 'people' }, data: { host_users: 'x' } };
    await created(admin.post('/api/v1/namespaces/ending/configmaps', list));
    expect(await admin.delete('/api/v1/namespaces/ending')).toMatchObject({ status: 200 });
    await eventually(
      () => admin.get('/api/v1/namespaces/ending'),
      ({ status }) => status === 404,
    );
  });

  test('keeps its authorities in the configuration while they change', async () => {
    await server.rotate();
    const theirs = repository('theirs', { secretRef: { name: 'theirs' } });
    await eventually(
      () => anna.post(REPOSITORIES, theirs),
      ({ status }) => status === 403,
    );
    // Applied again, it has no authorities.
    const { webhooks } = (await admin.get(`${WEBHOOKS}/sluice`)).body as unknown as { webhooks: Webhook[] };
    const bare = webhooks.map(({ clientConfig: { caBundle: _bundle, ...clientConfig }, ...rest }) => ({
      ...rest,
      clientConfig,
    }));
    await admin.patch(`${WEBHOOKS}/sluice`, { webhooks: bare });
    const expected = Buffer.from(server.ca).toString('base64');
    await eventually(
      () => admin.get(`${WEBHOOKS}/sluice`),
      ({ body }) =>
        (body as unknown as { webhooks: Webhook[] }).webhooks.every(
          ({ clientConfig }) => clientConfig.caBundle === expected,
        ),
    );
    await eventually(
      () => anna.post(REPOSITORIES, theirs),
      ({ status }) => status === 403,
    );
    expect(server.problems).toEqual([]);
  });

  test('while it is down, writes fail, or are stored unchecked, as its failure policy says; definitions apply', async () => {
    await server.stop();
    const theirs = repository('unchecked', { secretRef: { name: 'theirs' } });
    expect(await anna.post(REPOSITORIES, theirs)).toMatchObject({
      status: 500,
      body: { message: expect.stringContaining('failed calling webhook "objects.sluice.dev"') },
    });
    // Objects that exist can be deleted, and ConfigMaps without lists changed.
    expect(await anna.delete(`${REPOSITORIES}/mine`)).toMatchObject({ status: 200 });
    expect(await anna.patch(`${NAMESPACE}/configmaps/other`, { data: { text: 'y' } })).toMatchObject({ status: 200 });
    const { webhooks } = (await admin.get(`${WEBHOOKS}/sluice`)).body as unknown as { webhooks: Webhook[] };
    await admin.patch(`${WEBHOOKS}/sluice`, { webhooks: webhooks.map((one) => ({ ...one, failurePolicy: 'Ignore' })) });
    await eventually(
      () => anna.post(REPOSITORIES, theirs),
      ({ status }) => status === 201,
    );
    expect(await anna.post(REPOSITORIES, repository('with.dots', {}))).toMatchObject({ status: 422 });
  });
});

interface Webhook {
  readonly clientConfig: { readonly caBundle?: string };
}

describe('a kube-apiserver with a certificate for its webhooks', skipFor(missing !== '' && missing), () => {
  test('is the only caller', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-admission-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const config = join(folder, 'admission.yaml');
    const kubeconfig = join(folder, 'webhooks.kubeconfig');
    const [certificate, key] = [join(folder, 'client.crt'), join(folder, 'client.key')];
    const plugin = {
      name: 'ValidatingAdmissionWebhook',
      configuration: {
        ...{ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'WebhookAdmissionConfiguration' },
        kubeConfigFile: kubeconfig,
      },
    };
    const admission = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins: [plugin] };
    await writeFile(config, JSON.stringify(admission));
    const user = { 'client-certificate': certificate, 'client-key': key };
    const port = await freePort();
    // A port other than 443 is part of the name.
    const users = [{ name: `sluice.sluice-system.svc:${port}`, user }];
    await writeFile(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }));
    await using plane = await startPlane({ apiServerFlags: [`--admission-control-config-file=${config}`] });
    const caller = load(await readFile(await plane.userKubeconfig('admission-caller'), 'utf8')) as KubeconfigFile;
    const credentials = caller.users[0]?.user;
    await writeFile(certificate, Buffer.from(credentials?.['client-certificate-data'] ?? '', 'base64'));
    await writeFile(key, Buffer.from(credentials?.['client-key-data'] ?? '', 'base64'));

    await installDefinitions(plane.kubeconfig);
    const admin = await KubeApi.of(plane.kubeconfig);
    onTestFinished(() => admin.close());
    await using server = await startWebhookServer(plane, admin, { kind: 'User', name: 'admission-caller' }, port);
    await created(admin.post('/api/v1/namespaces', { metadata: { name: 'team-a' } }));
    const host = repository('host', { repo: 'https://10.0.0.1/a.git' });
    await eventually(
      () => admin.post(REPOSITORIES, host),
      ({ status }) => status === 403,
    );
    expect(await admin.post(REPOSITORIES, host)).toEqual(denied('objects.sluice.dev', '--allow-git-host'));

    // Another caller cannot find out what a user may do.
    const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.ca).toString('base64') };
    const direct = join(folder, 'direct.kubeconfig');
    const content = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'direct' },
      clusters: [{ name: 'direct', cluster }],
      users: [{ name: 'anonymous', user: {} }],
      contexts: [{ name: 'direct', context: { cluster: 'direct', user: 'anonymous' } }],
    };
    await writeFile(direct, JSON.stringify(content));
    const mallory = await KubeApi.of(direct);
    onTestFinished(() => mallory.close());
    expect((await mallory.post('/admission/validate', {})).status).toBe(401);
  });
});

interface KubeconfigFile {
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}
