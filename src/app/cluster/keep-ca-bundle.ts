import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { publishCaBundle } from '../../server/certificates/publish-ca-bundle.ts';
import type { ClusterFront } from './cluster-front.ts';

const RETRY_INTERVAL_MS = 5000;
/** Another writer, such as a GitOps engine, may have reset it. */
const CHECK_INTERVAL_MS = 600_000;

export interface KeepCaBundleOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly front: ClusterFront;
  readonly signal: AbortSignal;
  readonly warn: (subject: string, message: string) => void;
}

/** Keeps the authorities of the server in the APIService of the package kinds, so that the kube-apiserver trusts it. Returns at once. */
export function keepCaBundle({ client, clock, front, signal, warn }: KeepCaBundleOptions): void {
  const name = `${packageRevisionKind.version}.${packageRevisionKind.group}`;
  let cancel: () => void = () => undefined;
  let running = false;
  let problem: string | undefined;
  const check = async () => {
    if (running || signal.aborted) return;
    running = true;
    cancel();
    let delayMs = CHECK_INTERVAL_MS;
    try {
      await publishCaBundle(client, name, front.certificates);
      problem = undefined;
    } catch (error) {
      delayMs = RETRY_INTERVAL_MS;
      const message = `cannot put the authorities of the server into APIService ${name}: ${messageOf(error)}`;
      if (!signal.aborted && message !== problem) warn('certificates', message);
      problem = message;
    } finally {
      running = false;
      if (!signal.aborted) cancel = clock.schedule(delayMs, () => void check());
    }
  };
  front.onCertificates(() => void check());
  signal.addEventListener('abort', () => cancel(), { once: true });
  void check();
}
