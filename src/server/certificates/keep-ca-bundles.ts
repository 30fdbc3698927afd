import { Informer } from '../../controller/informer.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { validatingWebhookConfigurationKind } from '../../resource/kinds/admissionregistration/validating-webhook-configuration.ts';
import { type ApiService, apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { isOwnService, publishCaBundle, publishWebhookCaBundle, type ServiceName } from './publish-ca-bundle.ts';
import type { ServingCertificates } from './serving-certificates.ts';

export interface KeepCaBundlesOptions {
  /** May get, list, watch and patch the two objects. */
  readonly client: Client;
  readonly clock: Clock;
  /** Name of the APIService. */
  readonly apiService: string;
  /** Name of the ValidatingWebhookConfiguration, which need not exist. */
  readonly webhookConfiguration: string;
  /** The Service of this server: objects that name another one belong to another installation. */
  readonly service: ServiceName;
  /** The present certificates of the server. */
  readonly certificates: () => ServingCertificates;
  /** Called with each state of the APIService; undefined if it is deleted or names another Service. */
  readonly onApiService?: (object: ApiService | undefined) => void;
  /** Called with failures, after which it tries again, and with a missing APIService; once while the same one repeats. */
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
/** Another writer may undo each write at once: writes that follow one another faster than this are delayed more and more. */
const QUIET_MS = 60_000;
const MAX_QUICK_WRITES = 5;
const MIN_DELAY_MS = 1000;
/** An installation that is applied again may lack an object for a moment. */
const MAX_ABSENCE_MS = 30_000;

/**
 * Writes the authorities of the server into its APIService and its webhook configuration, now, when one of them is installed or changed by
 * another writer (an installation that is applied again has no authorities), and when the certificates change.
 */
export function keepCaBundles(options: KeepCaBundlesOptions): KeptCaBundles {
  const { client, service, apiService, webhookConfiguration, onApiService } = options;
  const kept = [
    keepOne(
      options,
      apiServiceKind,
      apiService,
      () => publishCaBundle(client, apiService, service, options.certificates()),
      (object) => onApiService?.(isOwnService(object?.spec.service, service) ? object : undefined),
      `there is no APIService ${apiService}, so that the cluster sends no requests for packages; apply the manifests again`,
    ),
    keepOne(options, validatingWebhookConfigurationKind, webhookConfiguration, () =>
      publishWebhookCaBundle(client, webhookConfiguration, service, options.certificates()),
    ),
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
  write: () => Promise<boolean>,
  onObject?: (object: T | undefined) => void,
  absence?: string,
): KeptCaBundles {
  const selection = { fieldSelector: `metadata.name=${name}` };
  const informer = new Informer({ client, clock, onError, selection, kind });
  let stopped = false;
  let running: Promise<void> | undefined;
  let isDue = false;
  let cancel: () => void = () => undefined;
  let cancelAbsence: () => void = () => undefined;
  let problem = '';
  let writtenMs = Number.NEGATIVE_INFINITY;
  let quickWrites = 0;
  let notBeforeMs = Number.NEGATIVE_INFINITY;
  const report = (error: unknown) => {
    const message = messageOf(error);
    if (message !== problem) onError(error);
    problem = message;
  };
  const noteWrite = () => {
    const nowMs = clock.now();
    quickWrites = nowMs - writtenMs < QUIET_MS ? quickWrites + 1 : 0;
    writtenMs = nowMs;
    if (quickWrites < MAX_QUICK_WRITES) return;
    // Below QUIET_MS, so that a conflict that goes on does not count as a new one.
    notBeforeMs = nowMs + Math.min(QUIET_MS / 2, MIN_DELAY_MS * 2 ** (quickWrites - MAX_QUICK_WRITES));
    report(new SluiceError('Conflict', `another program writes the authorities of ${kind.kind} ${name} too; stop it`));
  };
  const publishAfter = (delayMs: number) => {
    cancel();
    cancel = clock.schedule(delayMs, publish);
  };
  const run = async () => {
    while (isDue && !stopped) {
      isDue = false;
      const waitMs = notBeforeMs - clock.now();
      if (waitMs > 0) {
        // The clock may have been set.
        publishAfter(Math.min(waitMs, QUIET_MS));
        break;
      }
      try {
        if (await write()) noteWrite();
        else problem = '';
      } catch (error) {
        // Not installed yet, or changed meanwhile: the next event is about it.
        if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Conflict')) continue;
        report(error);
        publishAfter(RETRY_INTERVAL_MS);
      }
    }
    running = undefined;
  };
  const publish = () => {
    isDue = true;
    if (!stopped) running ??= run();
  };
  const noteAbsence = () => {
    if (absence !== undefined)
      cancelAbsence = clock.schedule(MAX_ABSENCE_MS, () => report(new SluiceError('NotFound', absence)));
  };
  noteAbsence();
  informer.addHandler(({ type, object }) => {
    if (object.metadata.name !== name) return;
    cancelAbsence();
    onObject?.(type === 'delete' ? undefined : object);
    if (type === 'delete') noteAbsence();
    else publish();
  });
  informer.start();
  return {
    publish,
    whenSynced: () => informer.whenSynced(),
    async stop() {
      stopped = true;
      cancel();
      cancelAbsence();
      await informer.stop();
      await running;
    },
  };
}
