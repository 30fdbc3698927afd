import { LEDGER_NAME } from '../../app/cluster/open-cluster-session.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import { ClusterStorage } from '../../kubernetes/storage/cluster-storage.ts';
import { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';

export interface ClusterLedgerOptions {
  readonly client: HttpClient;
  /** Of the cluster, for messages. */
  readonly server: string;
  /** Of the objects of the installation. */
  readonly namespace: string;
  /** False to keep in memory what the command finds out. */
  readonly write: boolean;
}

/** Opens the trust ledger of an installation for a command beside its replicas. NotFound with the next step where there is none. */
export async function openClusterLedger(options: ClusterLedgerOptions): Promise<ClusterTrustLedger> {
  const { client, server, namespace, write } = options;
  const ledger = await ClusterTrustLedger.open({
    objects: new ClusterStorage(configMapKind, client),
    // Repositories are written by the replicas alone.
    ...{ namespace, name: LEDGER_NAME, epoch: 0, readOnly: !write },
  });
  // Each leader enters its key before it serves.
  if (ledger.keys().length > 0) return ledger;
  ledger.close();
  throw new SluiceError(
    'NotFound',
    `there is no trust ledger in the namespace ${namespace} of ${server}; name the namespace of "sluice serve" with --ledger-namespace, or start it first; for a server of "sluice up", run the command on its data folder`,
  );
}
