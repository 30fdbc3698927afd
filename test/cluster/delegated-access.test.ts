import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../src/kubernetes/http-client.ts';
import { issueCertificate, type KeyPair } from '../../src/server/certificates/issue-certificate.ts';
import { publishCaBundle } from '../../src/server/certificates/publish-ca-bundle.ts';
import {
  renewServingCertificates,
  type ServingCertificates,
} from '../../src/server/certificates/serving-certificates.ts';
import { eventually } from '../support/api/eventually.ts';
import { type Identity, KubeApi, type KubeObject } from '../support/api/kube-api.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { revision } from '../support/package-kinds.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import {
  API_SERVICE,
  created,
  EXTENSION_NAMES,
  type ExtensionServer,
  PACKAGE_VERSION,
  startExtensionServer,
} from './support/extension-server.ts';
import { clusterPrograms } from './support/programs.ts';

const missing = inject('serverMissing');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const REVISIONS = `${PACKAGE_VERSION}/namespaces/default/packagerevisions`;
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const AUTHENTICATED = 'system:authenticated';

describe('an extension server of a cluster', skipFor(missing !== '' && missing), () => {
  let plane: ControlPlane;
  let admin: KubeApi;
  let extension: ExtensionServer;
  let serving: ServingCertificates;
  const open: KubeApi[] = [];

  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    plane = await ControlPlane.start({ programs });
    admin = await KubeApi.of(plane.kubeconfig);
    open.push(admin);
    const first = await renewServingCertificates(undefined, {
      names: EXTENSION_NAMES,
      nowMs: Date.now() - 300 * DAY_MS,
    });
    // The authority is about to end: its successor does not sign yet.
    serving = await renewServingCertificates(first, { names: EXTENSION_NAMES, nowMs: Date.now() - 2 * DAY_MS });
    extension = await startExtensionServer(plane, admin, serving);
    await eventually(
      () => admin.get(REVISIONS),
      ({ status }) => status === 200,
    );
    await grant('dev', [{ verbs: ['get', 'list', 'update'], resources: ['packagerevisions'] }], {
      kind: 'Group',
      name: 'dev',
    });
    await grant('approvers', [{ verbs: ['update'], resources: ['packagerevisions/approval'] }], {
      kind: 'User',
      name: 'otto',
    });
    await grant('visitors', [{ verbs: ['list'], resources: ['packages'] }], {
      kind: 'Group',
      name: 'system:unauthenticated',
    });
  });
  afterAll(async () => {
    for (const api of open) api.close();
    await extension?.[Symbol.asyncDispose]();
    await plane?.stop();
  });

  async function grant(
    name: string,
    rules: readonly { readonly verbs: readonly string[]; readonly resources: readonly string[] }[],
    subject: { readonly kind: string; readonly name: string; readonly namespace?: string },
  ): Promise<void> {
    const apiGroup = 'rbac.authorization.k8s.io';
    const metadata = { name };
    const complete = rules.map((rule) => ({ apiGroups: ['porch.kpt.dev'], ...rule }));
    await created(admin.post(`${RBAC}/clusterroles`, { metadata, rules: complete }));
    const roleRef = { apiGroup, kind: 'ClusterRole', name };
    const subjects = [subject.kind === 'ServiceAccount' ? subject : { apiGroup, ...subject }];
    await created(admin.post(`${RBAC}/clusterrolebindings`, { metadata, roleRef, subjects }));
  }

  /** The extension server without the aggregator. */
  async function direct(identity: Identity): Promise<KubeApi> {
    const kubeconfig = join(plane.folder, 'direct.kubeconfig');
    const cluster = {
      server: extension.url,
      'certificate-authority-data': Buffer.from(extension.ca).toString('base64'),
    };
    const content = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'direct' },
      clusters: [{ name: 'direct', cluster }],
      users: [{ name: 'anonymous', user: {} }],
      contexts: [{ name: 'direct', context: { cluster: 'direct', user: 'anonymous' } }],
    };
    await writeFile(kubeconfig, JSON.stringify(content));
    const api = (await KubeApi.of(kubeconfig)).as(identity);
    open.push(api);
    return api;
  }

  async function aggregated(identity: Identity): Promise<KubeApi> {
    const api = admin.as(identity);
    open.push(api);
    return api;
  }

  /** The certificate of a user of the cluster. */
  async function userIdentity(name: string, groups: readonly string[] = []): Promise<Identity> {
    const { users } = JSON.parse(await readFile(await plane.userKubeconfig(name, groups), 'utf8')) as {
      readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
    };
    const decoded = (key: string) => Buffer.from(users[0]?.user[key] ?? '', 'base64').toString();
    return { cert: decoded('client-certificate-data'), key: decoded('client-key-data') };
  }

  /** A token of a service account that has this name. */
  async function accountIdentity(name: string, spec: object = {}): Promise<Identity> {
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    const { status } = await admin.post(accounts, { metadata: { name } });
    expect([201, 409]).toContain(status);
    const { body } = await created(admin.post(`${accounts}/${name}/token`, { spec }));
    return { token: (body.status as { readonly token: string }).token };
  }

  async function issueProxy(commonName: string, ca?: KeyPair): Promise<KeyPair> {
    const path = join(plane.folder, 'front-proxy-ca');
    const issuer = ca ?? {
      certificate: await readFile(`${path}.crt`, 'utf8'),
      key: await readFile(`${path}.key`, 'utf8'),
    };
    const valid = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + HOUR_MS };
    return issueCertificate({ ...valid, commonName, usage: 'client' }, issuer);
  }

  const identityOf = ({ certificate, key }: KeyPair): Identity => ({ cert: certificate, key });
  const lastUser = () => {
    // The aggregator itself reads the documents of the API now and then.
    const { user, groups } = extension.records.findLast(({ resource }) => resource !== '') ?? {};
    return { user, groups: [...(groups ?? [])].sort() };
  };

  async function createDraft(packageName: string): Promise<KubeObject> {
    return (await created(admin.post(REVISIONS, revision(packageName)))).body;
  }
  const withLifecycle = ({ spec, ...draft }: KubeObject, lifecycle: string) => ({
    ...draft,
    spec: { ...(spec as object), lifecycle },
  });

  test('receives the user of kubectl --as from the aggregator', async (context) => {
    if (!hasKubectl()) context.skip('kubectl is not installed');
    const kubectl = new Kubectl(plane.kubeconfig, join(plane.folder, 'kubectl-cache'));
    await createDraft('as-alice');
    const listed = await kubectl.ok('get packagerevisions --as=alice --as-group=dev --as-uid=u-7 -o name');
    expect(listed).toContain('packagerevision.porch.kpt.dev/');
    expect(lastUser()).toEqual({ user: 'alice', groups: ['dev', AUTHENTICATED] });
    const refused = await kubectl.fails('get packagerevisions --as=alice');
    expect(refused).toContain('User "alice" cannot list resource "packagerevisions"');
  });

  test('authenticates users by the certificates of the cluster, through the aggregator and directly', async () => {
    const dora = await userIdentity('dora', ['dev']);
    for (const api of [await aggregated(dora), await direct(dora)]) {
      expect((await api.get(REVISIONS)).status).toBe(200);
      expect(lastUser()).toEqual({ user: 'dora', groups: ['dev', AUTHENTICATED] });
    }
    const guest = await userIdentity('guest');
    const refused = await (await direct(guest)).get(REVISIONS);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      'packagerevisions.porch.kpt.dev is forbidden: User "guest" cannot list resource "packagerevisions" in API group "porch.kpt.dev" in the namespace "default"',
    );
  });

  test('authenticates service accounts by their tokens, through the aggregator and directly', async () => {
    const account = await accountIdentity('robot');
    const user = 'system:serviceaccount:default:robot';
    const groups = ['system:authenticated', 'system:serviceaccounts', 'system:serviceaccounts:default'];
    await grant('robots', [{ verbs: ['list'], resources: ['packagerevisions'] }], {
      kind: 'ServiceAccount',
      name: 'robot',
      namespace: 'default',
    });
    for (const api of [await aggregated(account), await direct(account)]) {
      await expect.poll(async () => (await api.get(REVISIONS)).status).toBe(200);
      expect(lastUser()).toEqual({ user, groups });
      expect((await api.post(REVISIONS, revision('by-robot'))).status).toBe(403);
    }
    const wrong = await direct({ token: `${account.token}x` });
    expect((await wrong.get(REVISIONS)).status).toBe(401);
    // Issued for another server than the kube-apiserver.
    const elsewhere = await accountIdentity('robot', { audiences: ['elsewhere'] });
    expect((await (await direct(elsewhere)).get(REVISIONS)).status).toBe(401);
    const nothing = await direct({});
    expect((await nothing.get(REVISIONS)).status).toBe(401);
  });

  test('lets a user propose who may not approve, and one approve who may do nothing else', async () => {
    for (const [index, reach] of [aggregated, direct].entries()) {
      const [dev, otto] = [await reach(await userIdentity('dev', ['dev'])), await reach(await userIdentity('otto'))];
      const draft = await createDraft(`approved-${index}`);
      const path = `${REVISIONS}/${draft.metadata.name}`;
      const proposal = await dev.put(path, withLifecycle(draft, 'Proposed'));
      expect(proposal.status, proposal.text).toBe(200);
      const published = withLifecycle(proposal.body, 'Published');
      expect((await dev.put(`${path}/approval`, published)).status).toBe(403);
      expect((await otto.put(path, published)).status).toBe(403);
      expect((await otto.get(path)).status).toBe(403);
      const approval = await otto.put(`${path}/approval`, published);
      expect(approval.status, approval.text).toBe(200);
      expect((await dev.get(path)).body.spec).toMatchObject({ lifecycle: 'Published' });
      expect(extension.records.some(({ user, subResource }) => user === 'otto' && subResource === 'approval')).toBe(
        true,
      );
    }
  });

  test('does not take anonymous users for authenticated ones', async () => {
    const anonymous = await aggregated({});
    await expect.poll(async () => (await anonymous.get(`${PACKAGE_VERSION}/packages`)).status).toBe(200);
    expect(lastUser()).toEqual({ user: 'system:anonymous', groups: ['system:unauthenticated'] });
  });

  test('ignores the headers of everyone but the aggregator', async () => {
    const forged = { 'x-remote-user': 'root', 'x-remote-group': ['system:masters'] };
    const statusOf = async (identity: Identity) => (await (await direct(identity)).get(REVISIONS, forged)).status;
    expect(await statusOf({})).toBe(401);
    expect(await statusOf(await accountIdentity('forger'))).toBe(403);
    expect(await statusOf(await userIdentity('mallory'))).toBe(403);
    expect(lastUser()).toEqual({ user: 'mallory', groups: [AUTHENTICATED] });
    // The authority is right, the name is not.
    expect(await statusOf(identityOf(await issueProxy('front-proxy-clien')))).toBe(401);
    // The name is right, the authority is that of users.
    expect(await statusOf(await userIdentity('front-proxy-client'))).toBe(403);
    expect(await statusOf(identityOf(await issueProxy('front-proxy-client')))).toBe(200);
    expect(lastUser().user).toBe('root');
  });

  test('serves nothing that the cluster has not decided while it cannot be reached, and everything afterwards', async () => {
    const [dora, robot] = [await direct(await userIdentity('dora', ['dev'])), await accountIdentity('late-robot')];
    const secret = robot.token ?? '';
    extension.relay.refuses = true;
    extension.relay.cut();
    const path = `${REVISIONS}/undecided`;
    const [read, unproven] = await Promise.all([dora.get(path), (await direct(robot)).get(REVISIONS)]);
    expect(read.status).toBe(503);
    expect(read.body.message).toContain('cannot authorize the request: whether User "dora" may get resource');
    expect(unproven.status).toBe(503);
    expect(unproven.body.message).toContain('the credentials could not be checked; try again later');
    expect([read, unproven].map(({ headers }) => headers['retry-after'])).toEqual(['1', '1']);
    expect(extension.problems.length).toBeGreaterThan(0);
    expect(inspect(extension.problems, { depth: 10, showHidden: true })).not.toContain(secret);
    extension.relay.refuses = false;
    await expect.poll(async () => (await dora.get(path)).status).toBe(404);
    expect((await (await direct(robot)).get(REVISIONS)).status).toBe(403);
  });

  test('follows the authority of the aggregator while it rotates', async () => {
    const caFile = join(plane.folder, 'front-proxy-ca.crt');
    const client = join(plane.folder, 'front-proxy-client');
    const oldCa = await readFile(caFile, 'utf8');
    const oldProxy = await direct(identityOf(await issueProxy('front-proxy-client')));
    const asRoot = { 'x-remote-user': 'root', 'x-remote-group': ['system:masters'] };
    expect((await oldProxy.get(REVISIONS, asRoot)).status).toBe(200);

    const valid = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + HOUR_MS };
    const nextCa = await issueCertificate({ ...valid, commonName: 'front-proxy-2', usage: 'authority' });
    expect(extension.lastIssuer).toBe('CN=front-proxy');
    const failures: string[] = [];
    let stopped = false;
    const load = (async () => {
      while (!stopped) {
        const { status, text } = await admin.get(REVISIONS);
        if (status !== 200) failures.push(`${status} ${text}`);
      }
    })();
    try {
      await writeFile(caFile, oldCa + nextCa.certificate);
      await expect.poll(() => extension.clientCa).toContain(nextCa.certificate);
      const nextProxy = await issueProxy('front-proxy-client', nextCa);
      await writeFile(`${client}.key`, nextProxy.key);
      await writeFile(`${client}.crt`, nextProxy.certificate);
      const other = await direct(identityOf(nextProxy));
      expect((await other.get(REVISIONS, asRoot)).status).toBe(200);
      await writeFile(caFile, nextCa.certificate);
      // A kube-apiserver reads its new certificate, and begins new connections with it, after up to a minute.
      await expect.poll(() => extension.lastIssuer, { timeout: 120_000 }).toBe('CN=front-proxy-2');
    } finally {
      stopped = true;
      await load;
    }
    expect(failures).toEqual([]);
    // The old authority ends, also for a connection that is open.
    const configMap = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
    await admin.patch(configMap, { data: { 'requestheader-client-ca-file': nextCa.certificate } });
    await expect.poll(() => extension.clientCa).not.toContain(oldCa);
    expect((await oldProxy.get(REVISIONS, asRoot)).status).toBe(401);
    await expect.poll(async () => (await admin.get(REVISIONS)).status).toBe(200);
  });

  test('renews its own certificates and their authority while it serves', async () => {
    const next = await renewServingCertificates(serving, { names: EXTENSION_NAMES, nowMs: Date.now() });
    const [old, successor] = next.authorities;
    expect(serving.authorities.map(({ certificate }) => certificate)).toEqual([
      old?.certificate,
      successor?.certificate,
    ]);
    const trust = (certificate = '') =>
      admin.patch(API_SERVICE, { spec: { caBundle: Buffer.from(certificate).toString('base64') } });
    const reached = async () => (await admin.get(REVISIONS)).status;
    extension.serve(next);
    // The aggregator opens another connection for each other bundle.
    await trust(successor?.certificate);
    await expect.poll(reached).toBe(200);
    // Only the certificate of the successor is served by now.
    await trust(old?.certificate);
    await expect.poll(reached).toBe(503);
    const connection = new Connection(await findClusterAccess({ kubeconfig: plane.kubeconfig }));
    onTestFinished(() => connection.close());
    const client = new HttpClient({ connection, face: 'controller' });
    const service = { namespace: 'sluice-system', name: 'api' };
    await publishCaBundle(client, 'v1alpha1.porch.kpt.dev', service, next);
    await expect.poll(reached).toBe(200);
  });
});
