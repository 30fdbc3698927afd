import { messageOf } from '../../foundation/sluice-error.ts';
import { PACKAGE_KINDS } from '../../resource/kinds/index.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { SYSTEM_NAMESPACE_FIELD } from '../../resource/kinds/sluice/freeze.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { ApiServer } from '../../server/api-server.ts';
import { documentPaths, servedKinds } from '../../server/document-paths.ts';
import { DocumentCache } from '../../server/documents/document-cache.ts';
import type { Admission } from '../../server/handlers/handler.ts';
import { decodeKubernetesProtobuf } from '../../server/protobuf/decode-kubernetes-protobuf.ts';
import type { PathHandler } from '../../server/request/path-handler.ts';
import type { InitialOpenings } from '../service/initial-openings.ts';
import type { ApiParts, ServedApi } from '../service/serve-api.ts';
import type { Session } from '../session/session.ts';
import { sluiceVersion } from '../sluice-version.ts';
import type { ClusterFront } from './cluster-front.ts';
import { awaitingStorage } from './repositories/awaiting-storage.ts';
import type { UnreadRepositories } from './repositories/unread-repositories.ts';

export interface ClusterApiOptions {
  readonly session: Session;
  /** What requests wait for. */
  readonly openings: InitialOpenings;
  /** Those that lists must not leave out. */
  readonly unread: UnreadRepositories;
  readonly front: ClusterFront;
  /** Checks writes of packages. */
  readonly admit: Admission;
  /** False for a process of controllers: it serves health checks and metrics. */
  readonly servesPackages: boolean;
  /** Paths with any method for callers of the cluster that prove themselves in another way, such as reviews of admission. */
  readonly publicPaths: readonly PathHandler[];
}

/** Serves the package kinds of a session at the front of a replica. All other kinds are served by the kube-apiserver. */
export function serveClusterApi(options: ClusterApiOptions, parts: ApiParts): ServedApi {
  const { session, openings, unread, front, admit, servesPackages, publicPaths } = options;
  const { health, paths, webhooks, onRequest, warn } = parts;
  const registry = new Registry();
  if (servesPackages)
    for (const kind of PACKAGE_KINDS)
      registry.register(awaitingStorage(session.registry.storage(kind), openings, unread));
  const documents = new DocumentCache({
    served: () => ({ kinds: servedKinds(registry), reviews: [] }),
    generation: () => 0,
    version: sluiceVersion(),
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    fields: { [packageRevisionKind.group]: { [SYSTEM_NAMESPACE_FIELD]: session.readers.systemNamespace } },
  });
  const { authenticator, authorizer } = front.access;
  const server = new ApiServer({
    ...{ registry, authenticator, authorizer, admit, onRequest },
    clock: session.clock,
    decodeProtobuf: decodeKubernetesProtobuf,
    webhooks: firstOf([...publicPaths, webhooks]),
    publicPaths: [health.publicPaths],
    paths: [documentPaths(documents), health.detailPaths, ...paths],
    onError: (error, where) => warn(where, messageOf(error)),
  });
  front.serve(server);
  const usage = 'this replica leads and serves requests';
  return { url: front.url, usage, server, authorizer, stop: () => front.stop() };
}

/** The response of the first handler that serves the path. */
function firstOf(handlers: readonly PathHandler[]): PathHandler {
  return async (request) => {
    for (const handler of handlers) {
      const served = await handler(request);
      if (served !== undefined) return served;
    }
    return undefined;
  };
}
