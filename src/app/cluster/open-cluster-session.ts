import type { Clock } from '../../foundation/time/clock.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import { ClusterStorage } from '../../kubernetes/storage/cluster-storage.ts';
import { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import { OwnKey } from '../../package/trust/keys/own-key.ts';
import { SqliteAttributedPushes } from '../../package/trust/sqlite/sqlite-attributed-pushes.ts';
import { verifySignature } from '../../package/trust/statement/verify-signature.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import type { Event } from '../../resource/kinds/core/event.ts';
import type { Stored } from '../../resource/object/object.ts';
import { createDataFolder } from '../data/data-folder.ts';
import { BUILT_IN_RESOLVERS } from '../resolvers/built-in-resolvers.ts';
import { Session, type SessionOptions } from '../session/session.ts';
import { keySourceOf, pushesPath } from '../trust/open-trust.ts';
import { ClusterObjects } from './cluster-objects.ts';

/** Start of the names of the objects of the trust ledger. */
export const LEDGER_NAME = 'sluice-trust';

/** What a process may do that holds the lease. */
export interface Term {
  /** Returns the resource version from which the package kinds continue, at least `lowest`; see `reserveVersions`. */
  readonly reserveVersions: (lowest: bigint) => Promise<bigint>;
}

export interface ClusterSessionOptions
  extends Pick<SessionOptions, 'folder' | 'network' | 'functions' | 'signing' | 'about' | 'onNote' | 'signal'> {
  readonly client: HttpClient;
  readonly clock: Clock;
  /** Of the objects of this installation. */
  readonly namespace: string;
  /** Absent for a standby, which reads and writes nothing. */
  readonly term: Term | undefined;
  readonly onEvent: (event: Stored<Event>) => void;
  readonly onError: (error: unknown) => void;
}

/** A session on the objects of a cluster, with the cluster's trust ledger. */
export interface ClusterSession {
  readonly session: Session;
  readonly ledger: ClusterTrustLedger;
}

/** Opens a session whose state is in a cluster and in Git. Its folder is a cache, and is created if it is missing. */
export async function openClusterSession(options: ClusterSessionOptions): Promise<ClusterSession> {
  const { client, clock, namespace, folder, term, onEvent, onError, ...rest } = options;
  await createDataFolder(folder);
  let startVersion = 0n;
  // Larger than each epoch in the ledger: what this term writes counts even if the ConfigMap with the versions was lost.
  const beginEpoch = async (highest: number) => {
    startVersion = (await term?.reserveVersions(BigInt(highest) + 1n)) ?? 0n;
    return Number(startVersion);
  };
  const ledger = await ClusterTrustLedger.open({
    ...{ objects: new ClusterStorage(configMapKind, client), namespace, name: LEDGER_NAME, clock, onError },
    ...{ epoch: beginEpoch, readOnly: term === undefined },
  });
  const objects = new ClusterObjects({ client, clock, startVersion, onEvent });
  const session = await Session.openOn(
    {
      ...rest,
      folder,
      clock,
      actor: { name: 'sluice' },
      write: true,
      opens: true,
      systemNamespace: namespace,
      onError,
    },
    {
      objects,
      openTrust: async (key) => {
        const own = new OwnKey(keySourceOf(folder.path, key), ledger, clock);
        const pushes = new SqliteAttributedPushes(pushesPath(folder.path));
        return { signer: () => own.current(), verify: verifySignature, ledger, pushes };
      },
    },
  );
  return { session, ledger };
}

/** For explanations: the resolvers and the controllers of this process. */
export function aboutCluster(
  resolvers: typeof BUILT_IN_RESOLVERS,
  disabled: readonly string[],
): NonNullable<SessionOptions['about']> {
  return {
    resolvers: [...BUILT_IN_RESOLVERS, ...resolvers].map(({ name, claims, waitsFor }) => ({
      ...{ name, claims: [...claims] },
      ...(waitsFor === undefined ? {} : { waitsFor: [...waitsFor] }),
    })),
    disabled: [...disabled],
    serves: true,
  };
}
