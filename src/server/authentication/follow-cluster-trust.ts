import { Informer } from '../../controller/informer.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { type ClusterTrust, NO_TRUST, parseClusterTrust } from './cluster-trust.ts';

/** Where a kube-apiserver publishes whom it trusts; Role `extension-apiserver-authentication-reader` permits reading it. */
const NAMESPACE = 'kube-system';
const NAME = 'extension-apiserver-authentication';

export interface FollowClusterTrustOptions {
  /** May get, list and watch the ConfigMap. */
  readonly client: Client;
  readonly clock: Clock;
  /** Called with each new trust, before `whenSynced` resolves. */
  readonly onChange: (trust: ClusterTrust) => void;
  readonly onError: (error: unknown) => void;
}

/** The trust of a cluster, kept up to date. */
export interface FollowedClusterTrust {
  /** None until the ConfigMap is read. The last one that could be read if the ConfigMap is damaged or deleted. */
  readonly current: ClusterTrust;
  /** Resolves when the ConfigMap was read, or does not exist yet. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

/** Follows the ConfigMap in which a kube-apiserver publishes whom its extension servers must trust. */
export function followClusterTrust(options: FollowClusterTrustOptions): FollowedClusterTrust {
  const { client, clock, onChange, onError } = options;
  const selection = { namespace: NAMESPACE, fieldSelector: `metadata.name=${NAME}` };
  const informer = new Informer({
    ...{ client, clock, onError, selection, kind: configMapKind },
  });
  let current = NO_TRUST;
  let last = '';
  informer.addHandler(({ type, object }) => {
    // A kube-apiserver creates it again. To trust no caller until then would refuse every request.
    if (type === 'delete' || object.metadata.name !== NAME) return;
    const { data = {} } = object;
    const text = JSON.stringify(data);
    if (text === last) return;
    last = text;
    try {
      current = parseClusterTrust(data);
    } catch (error) {
      const problem = `cannot read ConfigMap ${NAMESPACE}/${NAME}: ${messageOf(error)}; its last content applies`;
      onError(new SluiceError('InvalidInput', problem, { cause: error }));
      return;
    }
    for (const problem of current.problems) onError(new SluiceError('InvalidInput', problem));
    onChange(current);
  });
  informer.start();
  return {
    get current() {
      return current;
    },
    whenSynced: () => informer.whenSynced(),
    stop: () => informer.stop(),
  };
}
