import { Informer } from '../../controller/informer.ts';
import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ClusterTrustLedger } from '../../package/trust/cluster/cluster-trust-ledger.ts';
import { LEDGER_LABEL, type LedgerObject } from '../../package/trust/cluster/ledger-objects.ts';
import type { Client } from '../../resource/client/client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { LEDGER_NAME } from './open-cluster-session.ts';

export interface LedgerWatchOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  readonly ledger: ClusterTrustLedger;
  /** Called with the ids of repositories in which another process has written; undefined: any may have changed. */
  readonly onWritten: (repositories: ReadonlySet<string> | undefined) => void;
  readonly warn: (subject: string, message: string) => void;
}

/** Changes within this time are joined at once: a busy leader writes each object many times a second. */
const JOIN_DELAY_MS = 1000;

/**
 * Joins what other processes write to the trust ledger, and reports whose repositories they changed. Objects that are deleted are written again,
 * unless this process is a standby. Returns what ends it.
 */
export function watchLedger({ client, clock, namespace, ledger, onWritten, warn }: LedgerWatchOptions) {
  const changed = new Map<string, LedgerObject>();
  let cancel: (() => void) | undefined;
  /** The last problem of each damaged object, which is reported once. */
  const problems = new Map<string, string>();
  const joinOne = (object: LedgerObject) => {
    const { name } = object.metadata;
    try {
      ledger.joinObjects([object]);
      problems.delete(name);
    } catch (error) {
      const message = messageOf(error);
      if (problems.get(name) !== message) warn('trust ledger', message);
      problems.set(name, message);
    }
  };
  let joinedVersion = ledger.joinedSince(Number.MAX_SAFE_INTEGER).version;
  const join = () => {
    cancel = undefined;
    const objects = [...changed.values()];
    changed.clear();
    const keysBefore = ledger.keysVersion;
    for (const object of objects) joinOne(object);
    // Also what a sync has joined meanwhile: its object may contain marks of other revisions.
    const { scopes, version } = ledger.joinedSince(joinedVersion);
    joinedVersion = version;
    if (scopes === undefined || ledger.keysVersion !== keysBefore) onWritten(undefined);
    else if (scopes.length > 0) onWritten(new Set(scopes.map(({ repository }) => repository)));
  };
  const informer = new Informer({
    ...{ client, clock, kind: configMapKind },
    selection: { namespace, labelSelector: `${LEDGER_LABEL}=${LEDGER_NAME}` },
    onError: (error) => {
      if (!isSluiceError(error, 'Expired')) warn('trust ledger', messageOf(error));
    },
  });
  informer.addHandler(({ type, object }) => {
    if (type === 'delete') {
      changed.delete(object.metadata.name);
      problems.delete(object.metadata.name);
      ledger.restoreObject(object.metadata.name);
      return;
    }
    changed.set(object.metadata.name, object as LedgerObject);
    cancel ??= clock.schedule(JOIN_DELAY_MS, join);
  });
  informer.start();
  return {
    stop: async () => {
      cancel?.();
      await informer.stop();
    },
  };
}
