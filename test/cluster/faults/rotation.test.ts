import { X509Certificate } from 'node:crypto';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, expect, test } from 'vitest';
import { issueCertificate, type KeyPair } from '../../../src/server/certificates/issue-certificate.ts';
import {
  caBundleOf,
  renewServingCertificates,
  type ServingCertificates,
} from '../../../src/server/certificates/serving-certificates.ts';
import { writeServingSecret } from '../../../src/server/certificates/serving-secret.ts';
import { KubeApi } from '../../support/api/kube-api.ts';
import { directKubeconfig } from '../support/direct-kubeconfig.ts';
import { expectPublished } from '../support/expect-published.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { NAMESPACE, type Replica } from '../support/sluice-serve.ts';
import { useInstallation } from '../support/use-installation.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/sluice-serving-cert`;
const API_SERVICE = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev';
const AUTHENTICATION = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
const NAMES = ['', '.sluice-system', '.sluice-system.svc', '.sluice-system.svc.cluster.local'].map(
  (end) => `sluice${end}`,
);
const valid = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + DAY_MS };

const published: string[] = [];
const open: KubeApi[] = [];
let started: readonly Replica[] = [];
/** Long enough for a start of kube-apiserver, in which no replica may end. */
const LEASE = ['--lease-duration', '60s', '--renew-deadline', '50s', '--retry-period', '1s'];
const used = useInstallation({ options: LEASE });
afterAll(() => {
  for (const api of open) api.close();
});

/** Runs it while clients publish packages, none of which may fail after its retries, and no replica may end. */
async function loaded(prefix: string, rotate: () => Promise<void>): Promise<void> {
  const { current } = used;
  if (started.length === 0) {
    started = current.replicas;
    await current.register('default');
  }
  const load = startLoad(current, prefix);
  await load.progress(5);
  await rotate();
  await load.progress(15);
  published.push(...(await load.stop()));
  console.log(`rotation: ${prefix}: ${load.steps} steps; retried ${JSON.stringify([...load.client.failures])}`);
  await expectPublished(current, published);
  expect(current.replicas).toEqual(started);
}

const decoded = (text: string) => Buffer.from(text, 'base64').toString();
/** The authorities that the kube-apiserver trusts. */
async function bundle(): Promise<string> {
  return decoded(((await used.current.admin.get(API_SERVICE)).body.spec as { caBundle: string }).caBundle);
}
async function secretData(): Promise<Readonly<Record<string, string>>> {
  const { body } = await used.current.admin.get(SECRET);
  return ((body as { data?: Record<string, string> }).data ?? {}) as Record<string, string>;
}
/** The certificate that each replica presents. */
function presented(): Promise<readonly string[]> {
  return Promise.all(used.current.replicas.map(({ port }) => certificateAt(port)));
}
function certificateAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.raw.toString('base64') ?? '');
      socket.destroy();
    });
    socket.on('error', reject);
  });
}
const derOf = (certificate: string) => new X509Certificate(certificate).raw.toString('base64');
async function direct({ port }: Replica, { certificate, key }: KeyPair): Promise<KubeApi> {
  const administrator = await KubeApi.of(await directKubeconfig(used.plane, port));
  const api = administrator.as({ cert: certificate, key });
  open.push(administrator, api);
  return api;
}

test('the Secret of the server certificate is deleted: all replicas use the one that replaces it', async () => {
  await loaded('deleted', async () => {
    const before = await bundle();
    expect((await used.current.admin.delete(SECRET)).status).toBe(200);
    await expect.poll(bundle).not.toBe(before);
    const data = await secretData();
    expect(await bundle()).toBe(decoded(data['ca.crt'] ?? ''));
    await expect.poll(presented).toEqual(Array(2).fill(derOf(decoded(data['tls.crt'] ?? ''))));
  });
});

test('the Secret of the server certificate is damaged: it is replaced, and reported', async () => {
  await loaded('damaged', async () => {
    const before = await secretData();
    const other = await renewServingCertificates(undefined, { names: NAMES, nowMs: Date.now() });
    const damage = { 'tls.key': writeServingSecret(other)['tls.key'] };
    expect((await used.current.admin.patch(SECRET, { data: damage })).status).toBe(200);
    await expect.poll(async () => (await secretData())['tls.crt']).not.toBe(before['tls.crt']);
    const data = await secretData();
    await expect.poll(presented).toEqual(Array(2).fill(derOf(decoded(data['tls.crt'] ?? ''))));
    await expect.poll(() => used.current.logs).toContain('tls.key is not the key of tls.crt; Sluice issues new ones');
  });
});

test('the authority of the server certificate gets a successor, which signs in its turn', async () => {
  const issue = (present: ServingCertificates | undefined, days: number) =>
    renewServingCertificates(present, { names: NAMES, nowMs: Date.now() - days * DAY_MS });
  const write = async (certificates: ServingCertificates) => {
    expect((await used.current.admin.patch(SECRET, { data: writeServingSecret(certificates) })).status).toBe(200);
  };
  await loaded('succeeded', async () => {
    // As it was written 250 days ago: the certificate is due, and the authority ends within 120 days.
    const old = await issue(undefined, 250);
    await write(old);
    await expect.poll(async () => (await bundle()).startsWith(caBundleOf(old))).toBe(true);
    await expect.poll(async () => (await bundle()).match(/BEGIN/g)).toHaveLength(2);
    // As if the successor were in the bundle for two days: it signs now.
    const adopted = await issue(old, 2);
    await write(adopted);
    await expect.poll(bundle).toBe(caBundleOf(adopted));
    await expect.poll(async () => (await secretData())['tls.crt']).not.toBe(writeServingSecret(adopted)['tls.crt']);
    const data = await secretData();
    // The old authority is trusted until its end, but its key is gone.
    expect(decoded(data['ca.key'] ?? '')).toBe(adopted.authorities[1]?.key);
    await expect.poll(presented).toEqual(Array(2).fill(derOf(decoded(data['tls.crt'] ?? ''))));
  });
});

test('the authorities of clients and of the aggregator are replaced, with a kube-apiserver that starts again', async () => {
  const { plane, current } = used;
  const file = (name: string) => join(plane.folder, `front-proxy-${name}`);
  const issueProxy = (ca: KeyPair) =>
    issueCertificate({ ...valid, commonName: 'front-proxy-client', usage: 'client' }, ca);
  await loaded('authorities', async () => {
    const clientCa = await issueCertificate({ ...valid, commonName: 'cluster-2', usage: 'authority' });
    const root = { ...valid, commonName: 'root-2', organisations: ['system:masters'], usage: 'client' } as const;
    const user = await issueCertificate(root, clientCa);
    const old = { certificate: await readFile(file('ca.crt'), 'utf8'), key: await readFile(file('ca.key'), 'utf8') };
    const next = await issueCertificate({ ...valid, commonName: 'front-proxy-2', usage: 'authority' });
    const [oldProxy, nextProxy] = [await issueProxy(old), await issueProxy(next)];
    const leader = await current.whenReady();
    const asRoot = { 'x-remote-user': 'root', 'x-remote-group': ['system:masters'] };
    const statusAs = async (pair: KeyPair) => (await (await direct(leader, pair)).get(REVISIONS, asRoot)).status;
    expect(await statusAs(oldProxy)).toBe(200);
    expect(await statusAs(nextProxy)).toBe(401);
    const statusOf = async (pair: KeyPair) => (await (await direct(leader, pair)).get(REVISIONS)).status;
    expect(await statusOf(user)).toBe(401);
    await appendFile(join(plane.folder, 'ca.crt'), clientCa.certificate);
    await writeFile(file('ca.crt'), old.certificate + next.certificate);
    await expect.poll(() => statusAs(nextProxy), { timeout: 90_000, interval: 200 }).toBe(200);
    await writeFile(file('client.key'), nextProxy.key);
    await writeFile(file('client.crt'), nextProxy.certificate);
    await writeFile(file('ca.crt'), next.certificate);
    await plane.killApiServer();
    await plane.startApiServer();
    // kube-apiserver adds to the list, and leaves it to the operator to remove the old authority.
    const list = { data: { 'requestheader-client-ca-file': next.certificate } };
    expect((await current.admin.patch(AUTHENTICATION, list)).status).toBe(200);
    await expect.poll(() => statusAs(oldProxy), { interval: 200 }).toBe(401);
    await expect.poll(() => statusOf(user), { interval: 200 }).toBe(200);
    const aggregated = current.admin.as({ cert: user.certificate, key: user.key });
    open.push(aggregated);
    await expect.poll(async () => (await aggregated.get(REVISIONS)).status).toBe(200);
  });
});
