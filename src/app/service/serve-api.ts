import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { clusterRoleKind, roleKind } from '../../resource/kinds/rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../resource/kinds/rbac/role-binding.ts';
import { SYSTEM_NAMESPACE_FIELD } from '../../resource/kinds/sluice/freeze.ts';
import { checkEscalation, isRbacKind, type RbacWrite } from '../../server/admission/check-escalation.ts';
import { restrictToOwnRights } from '../../server/admission/restrict-to-own-rights.ts';
import { ApiServer } from '../../server/api-server.ts';
import { ensureServerService, registerApiServices } from '../../server/api-services.ts';
import { AuditFile } from '../../server/audit/audit-file.ts';
import { auditLine } from '../../server/audit/audit-line.ts';
import { ensureAdminAccess } from '../../server/authentication/admin-access.ts';
import { firstOf } from '../../server/authentication/authenticator.ts';
import { CertificateAuthenticator } from '../../server/authentication/certificate-authenticator.ts';
import { TokenAuthenticator } from '../../server/authentication/token-authenticator.ts';
import type { Authorizer } from '../../server/authorization/authorizer.ts';
import { followRbacObjects } from '../../server/authorization/follow-rbac-objects.ts';
import { RbacAuthorizer } from '../../server/authorization/rbac-authorizer.ts';
import { RbacIndex } from '../../server/authorization/rbac-index.ts';
import { reconcileBootstrapObjects } from '../../server/authorization/reconcile-bootstrap-objects.ts';
import { openPki, serverNames } from '../../server/certificates/open-pki.ts';
import { documentPaths, servedKinds } from '../../server/document-paths.ts';
import { REVIEWS } from '../../server/documents/discovery/reviews.ts';
import { DocumentCache } from '../../server/documents/document-cache.ts';
import type { Admission } from '../../server/handlers/handler.ts';
import type { HealthChecks } from '../../server/health/health-checks.ts';
import { type Listener, type ListenOptions, listen } from '../../server/listener.ts';
import { registerPods } from '../../server/pods.ts';
import { decodeKubernetesProtobuf } from '../../server/protobuf/decode-kubernetes-protobuf.ts';
import type { PathHandler } from '../../server/request/path-handler.ts';
import type { RequestRecord } from '../../server/request/request-record.ts';
import { accessReviews } from '../../server/reviews/access-reviews.ts';
import { selfSubjectReview, tokenReview } from '../../server/reviews/identity-reviews.ts';
import { rulesReview } from '../../server/reviews/rules-review.ts';
import { policyGatesOf, policyIssuersOf } from '../policies/policy-gates.ts';
import type { Session } from '../session/session.ts';
import { sluiceVersion } from '../sluice-version.ts';
import type { ListenAddress } from './listen-address.ts';

/** What a service contributes to its API. */
export interface ApiParts {
  readonly health: HealthChecks;
  /** Additional paths for authorised users, such as metrics. */
  readonly paths: readonly PathHandler[];
  /** See ApiServerOptions. */
  readonly webhooks: PathHandler;
  readonly onRequest: (record: RequestRecord) => void;
  readonly warn: (subject: string, message: string) => void;
}

export interface ServeOptions extends ApiParts {
  readonly session: Session;
  /** Undefined: loopback, and the port of last time if it is free. */
  readonly address: ListenAddress | undefined;
}

/** The API of a session while it is served. */
export interface ServedApi {
  readonly url: string;
  /** For the log: how to use it. */
  readonly usage: string;
  readonly server: ApiServer;
  /** Decides what users may do. */
  readonly authorizer: Authorizer;
  /** Within about ten seconds, whatever clients do. */
  stop(): Promise<void>;
}

/** Serves the registry of a session as a Kubernetes API, and writes the kubeconfig that leads to it. */
export async function serveApi(options: ServeOptions): Promise<ServedApi> {
  const { session, health, warn } = options;
  const { folder, clock, registry, log } = session;
  const client = session.client.as({ name: 'sluice' }, 'api');
  registerApiServices(registry, { log, clock, aggregated: [packageRevisionKind.group] });
  registerPods(registry, { log, clock });
  await ensureServerService(client);
  await reconcileBootstrapObjects(client, { ClusterRole: clusterRoleKind, ClusterRoleBinding: clusterRoleBindingKind });

  const rbac = new RbacIndex();
  const following = followRbacObjects(rbac, {
    client,
    clock,
    kinds: {
      Role: roleKind,
      ClusterRole: clusterRoleKind,
      RoleBinding: roleBindingKind,
      ClusterRoleBinding: clusterRoleBindingKind,
    },
    onError: (error) => warn('rbac', messageOf(error)),
  });
  await following.whenSynced();
  const authorizer = new RbacAuthorizer(rbac);
  const tokens = new TokenAuthenticator({
    path: folder.tokens,
    clock,
    onProblem: (message) => warn('tokens', message),
  });
  const audit = new AuditFile({ path: folder.auditLog, onError: (error, where) => warn(where, messageOf(error)) });

  let generation = 0;
  const unfollow = registry.onChange(() => {
    generation += 1;
  });
  const documents = new DocumentCache({
    served: () => ({ kinds: servedKinds(registry), reviews: REVIEWS }),
    generation: () => generation,
    version: sluiceVersion(),
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    fields: { [packageRevisionKind.group]: { [SYSTEM_NAMESPACE_FIELD]: session.readers.systemNamespace } },
  });
  const server = new ApiServer({
    registry,
    clock,
    authenticator: firstOf([new CertificateAuthenticator(clock), tokens], (error) =>
      warn('authentication', messageOf(error)),
    ),
    authorizer,
    admit: admission(session, authorizer),
    decodeProtobuf: decodeKubernetesProtobuf,
    reviews: [
      ...accessReviews(authorizer),
      rulesReview(authorizer),
      selfSubjectReview,
      tokenReview((token) => tokens.userOf(token)),
    ],
    webhooks: options.webhooks,
    publicPaths: [health.publicPaths],
    paths: [documentPaths(documents), health.detailPaths, ...options.paths],
    onRequest: (record) => {
      const line = auditLine(record);
      if (line !== undefined) audit.append(line);
      options.onRequest(record);
    },
    onError: (error, where) => warn(where, messageOf(error)),
  });
  const end = async () => {
    unfollow();
    await following.stop();
    await audit.close();
  };
  let listener: Listener;
  try {
    listener = await open(server, options);
  } catch (error) {
    await end();
    throw error;
  }
  return {
    url: listener.url,
    usage: `kubectl --kubeconfig ${join(folder.shown, 'kubeconfig')} get packagerevisions`,
    server,
    authorizer,
    stop: async () => {
      await listener.stop();
      await end();
    },
  };
}

/** Opens the port, with a certificate for its names, and writes the kubeconfig. */
async function open(server: ApiServer, { session, address, warn }: ServeOptions): Promise<Listener> {
  const { folder, clock } = session;
  const wanted = address ?? { host: '127.0.0.1', port: await lastPort(folder.kubeconfig), tls: true };
  const pki = await openPki({
    folder: folder.pki,
    names: serverNames(wanted.host, hostname()),
    clock,
    onNote: (note) => warn('certificates', note),
  });
  const tls = { key: pki.server.key, cert: pki.server.certificate, clientCa: pki.authority };
  const common: Omit<ListenOptions, 'port'> = {
    host: wanted.host,
    ...(wanted.tls ? { tls } : {}),
    handle: (request, response) => void server.handle(request, response),
    onError: (error) => warn('connections', messageOf(error)),
    onStop: () => server.endWatches(),
  };
  const listener = await listenAt(common, wanted.port, address === undefined);
  await ensureAdminAccess({
    kubeconfig: folder.kubeconfig,
    tokenFile: folder.tokens,
    server: clientAddress(listener),
    caData: pki.authority,
    clock,
  });
  return listener;
}

/** A remembered port may be in use by now, so another one is chosen; a requested port must be free. */
async function listenAt(common: Omit<ListenOptions, 'port'>, port: number, elsewhere: boolean): Promise<Listener> {
  try {
    return await listen({ ...common, port });
  } catch (error) {
    if (!elsewhere || port === 0 || !isSluiceError(error, 'Unavailable')) throw error;
    return listen({ ...common, port: 0 });
  }
}

/** Returns the address for clients on this machine, with loopback in place of a wildcard address. */
function clientAddress({ url, host, port }: Listener): string {
  return host === '0.0.0.0' || host === '::' ? `${url.slice(0, url.indexOf(':'))}://localhost:${port}` : url;
}

/** The port that the kubeconfig of last time names, so that clients find the server again; else any. */
async function lastPort(kubeconfig: string): Promise<number> {
  try {
    const [, port] =
      /^\s*server: https?:\/\/127\.0\.0\.1:(\d{1,5})\s*$/m.exec(await readFile(kubeconfig, 'utf8')) ?? [];
    return Number(port ?? 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

/** Prevents users from granting rights that they do not have, and from using those of the server. */
function admission({ network, objects }: Session, authorizer: RbacAuthorizer): Admission {
  const client = objects.client({ name: 'sluice' });
  const restrict = restrictToOwnRights(
    authorizer,
    network.hosts,
    () => policyGatesOf(client),
    (namespace) => policyIssuersOf(client, namespace),
  );
  return async (planned) => {
    await restrict(planned);
    const { user, operation, kind, object, old } = planned;
    if (operation === 'delete' || !isRbacKind(kind)) return;
    const write = { user, kind: kind.kind, object, old } as unknown as RbacWrite;
    checkEscalation(write, authorizer);
  };
}
