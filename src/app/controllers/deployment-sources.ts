import type { DeploymentSources, DeploymentStatus } from '../../delivery/status/deployment-status.ts';
import { CommitStatusReader } from '../../delivery/status/sources/commit-status-reader.ts';
import { EngineObjects } from '../../delivery/status/sources/engine-objects.ts';
import { SharedBytes } from '../../delivery/status/sources/store-limit.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { checkedLookup } from '../../git/network/checked-lookup.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { localHostError } from '../../git/network/host-rules.ts';
import { endpointOf } from '../../git/network/remote-url.ts';
import type { ClusterAccess } from '../../kubernetes/access/cluster-access.ts';
import { accessFromText } from '../../kubernetes/access/kubeconfig.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import { credentialsOf } from '../../package/upstream/credentials.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretKind, secretText } from '../../resource/kinds/core/secret.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { HostDocuments } from './host-documents.ts';

export interface DeploymentSourcesOptions {
  /** Reads Secrets. */
  readonly client: Client;
  readonly clock: Clock;
  /** Hosts that may be connected to, for clusters as for Git. */
  readonly network: GitNetwork;
  /** The cluster that Sluice runs in; absent without one. */
  readonly cluster?: Client | undefined;
}

/** A watch of an engine is one of many requests; a cluster that does not respond must not occupy a worker for long. */
const LIMITS = {
  ...{ headers: 15_000, body: 30_000, call: 30_000 },
  ...{ responseBytes: 16 * 1024 * 1024, pageBytes: 4 * 1024 * 1024 },
};
/** Any user who may write a target names the server, so that it must not decide how much Sluice keeps. */
const LIST_LIMITS = { items: 20_000, pages: 5_000, bytes: 32 * 1024 * 1024 };
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/** A client for the cluster of the engine of a target. */
interface OpenedCluster {
  readonly client: Client;
  /** For messages. */
  readonly name: string;
  close(): Promise<void>;
}

/** Opens what reports about deployments: the cluster that Sluice runs in, one of a kubeconfig, or the Git host of a target. */
export function deploymentSources(options: DeploymentSourcesOptions): DeploymentSources & {
  openCluster(target: DeliveryTarget, signal: AbortSignal): Promise<OpenedCluster>;
} {
  const { client, clock, network } = options;
  const kept = new Map<string, SharedBytes>();

  const sharedBy = ({ metadata: { namespace = DEFAULT_NAMESPACE } }: DeliveryTarget): SharedBytes => {
    const shared = kept.get(namespace) ?? new SharedBytes();
    kept.set(namespace, shared);
    return shared;
  };

  const secretOf = async ({ metadata, spec }: DeliveryTarget, signal: AbortSignal) => {
    const reference = spec.engine?.kubeconfigSecretRef;
    if (reference === undefined) return undefined;
    const { namespace = DEFAULT_NAMESPACE } = metadata;
    const secret = await client.find(secretKind, { namespace, name: reference.name }, { signal });
    const where = `Secret ${namespace}/${reference.name}, which spec.engine.kubeconfigSecretRef refers to,`;
    if (secret === undefined)
      throw new SluiceError(
        'NotFound',
        `${where} does not exist; create it with the kubeconfig under the key ${reference.key}`,
      );
    return { secret, where, key: reference.key };
  };

  const openCluster = async (target: DeliveryTarget, signal: AbortSignal): Promise<OpenedCluster> => {
    const found = await secretOf(target, signal);
    if (found === undefined) {
      const { cluster } = options;
      if (cluster !== undefined)
        return { client: cluster, name: 'the cluster of Sluice', close: async () => undefined };
      throw new SluiceError(
        'InvalidInput',
        'cannot read the engine of the target: Sluice does not run in a cluster; set spec.engine.kubeconfigSecretRef to a Secret with the kubeconfig of the cluster of the engine',
      );
    }
    const text = secretText(found.secret, found.key);
    if (text === undefined)
      throw new SluiceError('InvalidInput', `${found.where} has no key ${found.key}; put the kubeconfig there`);
    const access = checkedAccess(await accessFromText(text, `the kubeconfig in ${found.where}`, clock), network);
    const connection = new Connection(access, { clock, limits: LIMITS });
    return {
      client: new HttpClient({
        ...{ connection, face: 'controller' },
        ...{ listLimits: LIST_LIMITS, eventBytes: MAX_EVENT_BYTES },
      }),
      name: access.server,
      close: () => connection.close(),
    };
  };

  return {
    openCluster,
    async versionOf(target, signal) {
      const { uid, resourceVersion } = (await secretOf(target, signal))?.secret.metadata ?? {};
      return uid === undefined ? '' : `${uid}/${resourceVersion}`;
    },

    async open(target, onChange, signal): Promise<DeploymentStatus> {
      const { engine, git } = target.spec;
      if (engine?.type === 'CommitStatus') {
        const credentials = credentialsOf(client, target, git.secretRef);
        const documents = new HostDocuments({ network, ...(credentials === undefined ? {} : { credentials }) });
        return new CommitStatusReader(target, documents.read, () => documents.close());
      }
      const { client: engineClient, name, close } = await openCluster(target, signal);
      const shared = engine?.kubeconfigSecretRef === undefined ? undefined : sharedBy(target);
      return new EngineObjects(target, {
        ...{ client: engineClient, cluster: name, clock, onChange, onClose: close },
        ...(shared === undefined ? {} : { shared }),
      });
    },
  };
}

/** A user of the API chose the server, and Sluice connects to it from inside its network: the rules on Git hosts apply. */
function checkedAccess(access: ClusterAccess, { hosts }: GitNetwork): ClusterAccess {
  const endpoint = endpointOf(new URL(access.server));
  if (hosts.isRefused(endpoint.host, endpoint.port)) throw localHostError(endpoint);
  return { ...access, lookup: checkedLookup(hosts, endpoint) };
}
