import { readFile } from 'node:fs/promises';
import type { TLSSocket } from 'node:tls';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { Connection } from '../../../src/kubernetes/connection/connection.ts';
import { delegateAccess } from '../../../src/kubernetes/delegated-access.ts';
import { HttpClient } from '../../../src/kubernetes/http-client.ts';
import { fixedAccess } from '../../../src/kubernetes/testing.ts';
import { Registry } from '../../../src/resource/storage/registry.ts';
import { caBundleOf, type ServingCertificates } from '../../../src/server/certificates/serving-certificates.ts';
import { documentPaths, servedKinds } from '../../../src/server/document-paths.ts';
import { DocumentCache } from '../../../src/server/documents/document-cache.ts';
import type { ListenerTls } from '../../../src/server/listener.ts';
import type { RequestRecord } from '../../../src/server/request/request-record.ts';
import { startTestServer } from '../../../src/server/testing.ts';
import type { Answer, KubeApi } from '../../support/api/kube-api.ts';
import { packageKinds } from '../../support/package-kinds.ts';
import { scratchRepository } from '../../support/scratch-repository.ts';
import type { ControlPlane } from './control-plane.ts';
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts';

const NAMESPACE = 'sluice-system';
export const PACKAGE_VERSION = '/apis/porch.kpt.dev/v1alpha1';
export const API_SERVICE = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.porch.kpt.dev';
/** The names of its certificate. */
export const EXTENSION_NAMES = [`api.${NAMESPACE}.svc`, '127.0.0.1'];
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const GROUP = { apiGroup: 'rbac.authorization.k8s.io' };

/** The server of the package kinds, over a Git repository, behind the aggregator of a control plane. */
export interface ExtensionServer extends AsyncDisposable {
  /** For calls without the aggregator. */
  readonly url: string;
  readonly ca: string;
  /** Every request that it served. */
  readonly records: readonly RequestRecord[];
  /** Failures of authentication, which it reported. */
  readonly problems: readonly unknown[];
  /** The authorities that it accepts now. */
  readonly clientCa: string;
  /** The issuer of the client certificate of the last request over HTTP/2, which only the aggregator speaks here. */
  readonly lastIssuer: string;
  /** Between the server and the kube-apiserver that reviews for it. */
  readonly relay: TcpRelay;
  /** Serves with other certificates from now on. */
  serve(certificates: ServingCertificates): void;
}

/** Starts an extension server with the rights that an installation has, and registers it. Resolves when it is available. */
export async function startExtensionServer(
  plane: ControlPlane,
  admin: KubeApi,
  certificates: ServingCertificates,
): Promise<ExtensionServer> {
  const problems: unknown[] = [];
  const records: RequestRecord[] = [];
  let own = certificates.server;

  const token = await createAccount(admin);
  const relay = await startTcpRelay(Number(new URL(plane.url).port));
  const connection = new Connection(
    fixedAccess(`https://127.0.0.1:${relay.port}`, token, { tls: { insecure: false, ca: await caOf(plane) } }),
  );
  let setTls: (tls: ListenerTls) => void = () => undefined;
  const tlsFor = (clientCa: string) => ({ key: own.key, cert: own.certificate, clientCa });
  const access = delegateAccess({
    client: new HttpClient({ connection, face: 'api' }),
    clock: systemClock,
    onAuthorities: (clientCa) => setTls(tlsFor(clientCa)),
    onError: (error) => problems.push(error),
  });
  await access.whenSynced();

  const scratch = await scratchRepository();
  const { revisions, resources, packages } = await packageKinds(scratch);
  const registry = new Registry();
  for (const storage of [revisions, resources, packages]) registry.register(storage as never);
  const documents = new DocumentCache({
    served: () => ({ kinds: servedKinds(registry), reviews: [] }),
    generation: () => 0,
    version: '0.0.0',
    platform: 'linux/amd64',
  });
  let lastIssuer = '';
  const server = await startTestServer(
    {
      ...{ registry, authorizer: access.authorizer },
      authenticator: {
        authenticate(request) {
          if (':authority' in request.headers)
            lastIssuer = (request.socket as TLSSocket).getPeerX509Certificate()?.issuer ?? '';
          return access.authenticator.authenticate(request);
        },
      },
      paths: [documentPaths(documents)],
      onRequest: (record) => records.push(record),
    },
    [],
    tlsFor(access.clientCa),
  );
  setTls = (tls) => server.listener.setTls(tls);
  const ca = caBundleOf(certificates);
  await register(admin, server.listener.port, ca);
  return {
    ...{ url: server.listener.url, ca, records, problems, relay },
    serve(changed) {
      own = changed.server;
      setTls(tlsFor(access.clientCa));
    },
    get clientCa() {
      return access.clientCa;
    },
    get lastIssuer() {
      return lastIssuer;
    },
    [Symbol.asyncDispose]: async () => {
      await access.stop();
      await server.stop();
      await connection.close();
      await relay[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function caOf({ folder }: ControlPlane): Promise<string> {
  return readFile(`${folder}/ca.crt`, 'utf8');
}

/** The account of the server, which may have credentials and requests reviewed, and nothing else. Returns a token of it. */
async function createAccount(admin: KubeApi): Promise<string> {
  await created(admin.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } }));
  const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
  await created(admin.post(accounts, { metadata: { name: 'sluice' } }));
  const subjects = [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: 'sluice' }];
  const metadata = { name: 'sluice' };
  const delegator = { ...GROUP, kind: 'ClusterRole', name: 'system:auth-delegator' };
  await created(admin.post(`${RBAC}/clusterrolebindings`, { metadata, roleRef: delegator, subjects }));
  const reader = { ...GROUP, kind: 'Role', name: 'extension-apiserver-authentication-reader' };
  const readers = `${RBAC}/namespaces/kube-system/rolebindings`;
  await created(admin.post(readers, { metadata, roleRef: reader, subjects }));
  const { status } = (await created(admin.post(`${accounts}/sluice/token`, { spec: {} }))).body;
  return (status as { readonly token: string }).token;
}

async function register(admin: KubeApi, port: number, ca: string): Promise<void> {
  const service = { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] };
  const services = `/api/v1/namespaces/${NAMESPACE}/services`;
  await created(admin.post(services, { metadata: { name: 'api' }, spec: service }));
  const name = 'v1alpha1.porch.kpt.dev';
  const spec = {
    ...{ group: 'porch.kpt.dev', version: 'v1alpha1', groupPriorityMinimum: 1000, versionPriority: 15 },
    service: { namespace: NAMESPACE, name: 'api', port },
    caBundle: Buffer.from(ca).toString('base64'),
  };
  await created(admin.post('/apis/apiregistration.k8s.io/v1/apiservices', { metadata: { name }, spec }));
}

/** The answer, which must be that an object was created. */
export async function created(answer: Promise<Answer>): Promise<Answer> {
  const { status, text } = await answer;
  if (status !== 201) throw new Error(`the server responded with ${status}: ${text}`);
  return answer;
}
