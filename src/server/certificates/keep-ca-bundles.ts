import { CLUSTER_WATCH_TIMEOUT_MS, Informer } from '../../controller/informer.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { validatingWebhookConfigurationKind } from '../../resource/kinds/admissionregistration/validating-webhook-configuration.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { publishCaBundle, publishWebhookCaBundle } from './publish-ca-bundle.ts';
import type { ServingCertificates } from './serving-certificates.ts';

export interface KeepCaBundlesOptions {
  /** May get, list, watch and patch the two objects. */
  readonly client: Client;
  readonly clock: Clock;
  /** Name of the APIService. */
  readonly apiService: string;
  /** Name of the ValidatingWebhookConfiguration, which need not exist. */
  readonly webhookConfiguration: string;
  /** The present certificates of the server. */
  readonly certificates: () => ServingCertificates;
  /** Called with failures, after which it tries again. */
  readonly onError: (error: unknown) => void;
}

/** The objects by which a cluster trusts the server, kept up to date. */
export interface KeptCaBundles {
  /** Writes what is missing now: call it whenever the certificates have changed. */
  publish(): void;
  /** Resolves when both objects were read, or do not exist. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

const RETRY_INTERVAL_MS = 10_000;

/**
 * Writes the authorities of the server into its APIService and its webhook configuration, now, when one of them is installed or changed by
 * another writer (an installation that is applied again has no authorities), and when the certificates change.
 */
export function keepCaBundles(options: KeepCaBundlesOptions): KeptCaBundles {
  const { client, apiService, webhookConfiguration } = options;
  const kept = [
    keepOne(options, apiServiceKind, apiService, async () => {
      await publishCaBundle(client, apiService, options.certificates());
    }),
    keepOne(options, validatingWebhookConfigurationKind, webhookConfiguration, async () => {
      await publishWebhookCaBundle(client, webhookConfiguration, options.certificates());
    }),
  ];
  return {
    publish() {
      for (const one of kept) one.publish();
    },
    whenSynced: async () => {
      await Promise.all(kept.map((one) => one.whenSynced()));
    },
    stop: async () => {
      await Promise.all(kept.map((one) => one.stop()));
    },
  };
}

function keepOne<T extends KubernetesObject>(
  { client, clock, onError }: KeepCaBundlesOptions,
  kind: Kind<T>,
  name: string,
  write: () => Promise<void>,
): KeptCaBundles {
  const selection = { fieldSelector: `metadata.name=${name}` };
  const informer = new Informer({ client, clock, onError, selection, kind, watchTimeoutMs: CLUSTER_WATCH_TIMEOUT_MS });
  let stopped = false;
  let running: Promise<void> | undefined;
  let isDue = false;
  let cancel: () => void = () => undefined;
  const run = async () => {
    while (isDue && !stopped) {
      isDue = false;
      try {
        await write();
      } catch (error) {
        // Not installed yet, or changed meanwhile: the next event is about it.
        if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Conflict')) continue;
        onError(error);
        cancel();
        cancel = clock.schedule(RETRY_INTERVAL_MS, publish);
      }
    }
    running = undefined;
  };
  const publish = () => {
    isDue = true;
    if (!stopped) running ??= run();
  };
  informer.addHandler(({ type, object }) => {
    if (type !== 'delete' && object.metadata.name === name) publish();
  });
  informer.start();
  return {
    publish,
    whenSynced: () => informer.whenSynced(),
    async stop() {
      stopped = true;
      cancel();
      await informer.stop();
      await running;
    },
  };
}
