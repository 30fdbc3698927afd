import { policyGatesOf, policyIssuersOf } from '../../../src/app/policies/policy-gates.ts';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { HostRules } from '../../../src/git/network/host-rules.ts';
import { findClusterAccess } from '../../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../../src/kubernetes/connection/connection.ts';
import { delegateAccess } from '../../../src/kubernetes/delegated-access.ts';
import { HttpClient } from '../../../src/kubernetes/http-client.ts';
import { AdmissionWebhook } from '../../../src/server/admission/admission-webhook.ts';
import { keepCaBundles } from '../../../src/server/certificates/keep-ca-bundles.ts';
import {
  caBundleOf,
  renewServingCertificates,
  type ServingCertificates,
} from '../../../src/server/certificates/serving-certificates.ts';
import type { ListenerTls } from '../../../src/server/listener.ts';
import { startTestServer } from '../../../src/server/testing.ts';
import type { KubeApi } from '../../support/api/kube-api.ts';
import type { ControlPlane } from './control-plane.ts';
import { created } from './extension-server.ts';

const NAMESPACE = 'sluice-system';
const SERVICE = 'sluice';
export const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** A server with the admission webhook, to which a kube-apiserver connects through a Service. */
export interface WebhookServer extends AsyncDisposable {
  readonly url: string;
  readonly ca: string;
  /** Reviews that it has received. */
  readonly reviews: number;
  readonly problems: readonly unknown[];
  /** Ends the server; the configuration stays. */
  stop(): Promise<void>;
  /** Serves with certificates of another authority from now on. */
  rotate(): Promise<void>;
}

/** Starts a server and installs its configuration, without authorities. `callers` may post reviews. */
export async function startWebhookServer(
  plane: ControlPlane,
  admin: KubeApi,
  callers: { readonly kind: 'User' | 'Group'; readonly name: string },
  port = 0,
): Promise<WebhookServer> {
  const problems: unknown[] = [];
  const onError = (error: unknown) => problems.push(error);
  let certificates = await issued();
  const connection = new Connection(await findClusterAccess({ kubeconfig: plane.kubeconfig }));
  const client = new HttpClient({ connection, face: 'api' });
  let setTls: (tls: ListenerTls) => void = () => undefined;
  const tlsFor = (clientCa: string) => ({
    ...{ key: certificates.server.key, cert: certificates.server.certificate, clientCa },
  });
  const access = delegateAccess({
    ...{ client, clock: systemClock, onError },
    onAuthorities: (clientCa) => setTls(tlsFor(clientCa)),
  });
  await access.whenSynced();
  let reviews = 0;
  const { authenticator, admissionAuthorizer: authorizer } = access;
  const hosts = new HostRules(['127.0.0.1:3000']);
  const { handle } = new AdmissionWebhook({
    ...{ authenticator, authorizer, hosts, clock: systemClock, onError },
    policyGates: () => policyGatesOf(client),
    policyIssuers: (namespace) => policyIssuersOf(client, namespace),
  });
  const server = await startTestServer(
    {
      webhooks(request) {
        reviews += 1;
        return handle(request);
      },
    },
    [],
    tlsFor(access.clientCa),
    {},
    { port },
  );
  setTls = (tls) => server.listener.setTls(tls);
  await install(admin, server.listener.port, callers);
  const bundles = keepCaBundles({
    ...{ client, clock: systemClock, onError, apiService: 'v1alpha1.porch.kpt.dev', webhookConfiguration: SERVICE },
    service: { namespace: NAMESPACE, name: SERVICE },
    certificates: () => certificates,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      await bundles.stop();
      await access.stop();
      await server.stop();
      await connection.close();
    })();
    return stopped;
  };
  return {
    ...{ url: server.listener.url, problems, stop },
    get ca() {
      return caBundleOf(certificates);
    },
    get reviews() {
      return reviews;
    },
    async rotate() {
      certificates = await issued();
      setTls(tlsFor(access.clientCa));
      bundles.publish();
    },
    [Symbol.asyncDispose]: stop,
  };
}

function issued(): Promise<ServingCertificates> {
  const names = [`${SERVICE}.${NAMESPACE}.svc`, '127.0.0.1'];
  return renewServingCertificates(undefined, { names, nowMs: Date.now() });
}

async function install(
  admin: KubeApi,
  port: number,
  callers: { readonly kind: string; readonly name: string },
): Promise<void> {
  await created(admin.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } }));
  const service = { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] };
  await created(admin.post(`/api/v1/namespaces/${NAMESPACE}/services`, { metadata: { name: SERVICE }, spec: service }));
  await installWebhook(admin, port, callers);
}

/** Lets a kube-apiserver call the webhook at a port of the Service. */
export async function installWebhook(
  admin: KubeApi,
  port: number,
  callers: { readonly kind: string; readonly name: string },
): Promise<void> {
  const metadata = { name: 'sluice-admission-caller' };
  const rules = [{ nonResourceURLs: ['/admission/validate'], verbs: ['post'] }];
  await created(admin.post(`${RBAC}/clusterroles`, { metadata, rules }));
  const apiGroup = 'rbac.authorization.k8s.io';
  const roleRef = { apiGroup, kind: 'ClusterRole', name: metadata.name };
  const binding = { metadata, roleRef, subjects: [{ apiGroup, ...callers }] };
  await created(admin.post(`${RBAC}/clusterrolebindings`, binding));
  await created(admin.post(WEBHOOKS, { metadata: { name: SERVICE }, webhooks: webhooksAt(port) }));
}

/** Those of an installation, at another port. */
function webhooksAt(port: number) {
  const clientConfig = { service: { namespace: NAMESPACE, name: SERVICE, path: '/admission/validate', port } };
  const common = { clientConfig, admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Fail' };
  const version = { apiVersions: ['v1alpha1'], operations: ['CREATE', 'UPDATE'] };
  const lists = `has(one.data) && ('allowed_signers' in one.data || 'host_users' in one.data)`;
  return [
    {
      ...{ ...common, name: 'objects.sluice.dev' },
      rules: [
        { ...version, apiGroups: ['config.porch.kpt.dev'], resources: ['repositories'] },
        {
          ...version,
          apiGroups: ['sluice.dev'],
          resources: [
            'analysistemplates',
            'deliverytargets',
            'freezes',
            'functionpolicies',
            'notifications',
            'packagepolicies',
            'waveplans',
            'wavetargets/status',
          ],
        },
      ],
    },
    {
      ...{ ...common, name: 'users.sluice.dev' },
      rules: [
        {
          ...{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] },
          operations: ['CREATE', 'UPDATE', 'DELETE'],
        },
      ],
      matchConditions: [
        { name: 'lists-users', expression: `[object, oldObject].exists(one, one != null && ${lists})` },
      ],
    },
  ];
}
