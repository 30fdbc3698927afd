import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { keepCaBundles } from '../../server/certificates/keep-ca-bundles.ts';
import type { ServiceName } from '../../server/certificates/publish-ca-bundle.ts';
import { AvailabilityChecks } from './availability-checks.ts';
import type { ClusterFront } from './cluster-front.ts';

/** Name of the ValidatingWebhookConfiguration of an installation. */
const WEBHOOK_CONFIGURATION = 'sluice';

export interface KeepServerTrustedOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly front: ClusterFront;
  /** Of this server. */
  readonly service: ServiceName;
  readonly signal: AbortSignal;
  readonly warn: (subject: string, message: string) => void;
}

/**
 * Keeps the authorities of the server in the APIService of the package kinds, and in the webhook configuration if there is one, so that the
 * kube-apiserver trusts it, and requests checks of its availability. Returns at once.
 */
export function keepServerTrusted({ client, clock, front, service, signal, warn }: KeepServerTrustedOptions): void {
  const checks = new AvailabilityChecks({
    ...{ client, clock },
    onError: (error) => {
      if (!signal.aborted)
        warn(
          'availability',
          `cannot request a check of the server by the kube-apiserver: ${messageOf(error)}; it checks by itself after 30 seconds at most`,
        );
    },
  });
  const kept = keepCaBundles({
    ...{ client, clock, service, certificates: () => front.certificates },
    apiService: `${packageRevisionKind.version}.${packageRevisionKind.group}`,
    webhookConfiguration: WEBHOOK_CONFIGURATION,
    onApiService: (object) => checks.note(object),
    onError: (error) => {
      if (!signal.aborted)
        warn('certificates', `cannot keep the authorities of the server in the cluster: ${messageOf(error)}`);
    },
  });
  front.onCertificates(() => kept.publish());
  const stop = () => {
    Promise.all([kept.stop(), checks.stop()]).catch((error: unknown) => warn('certificates', messageOf(error)));
  };
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
}
