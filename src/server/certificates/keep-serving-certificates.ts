import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { renewServingCertificates, type ServingCertificates } from './serving-certificates.ts';
import { readServingSecret, writeServingSecret } from './serving-secret.ts';

export interface KeepServingCertificatesOptions {
  /** May get, create and update the Secret. */
  readonly client: Client;
  /** Shared by all replicas of the server. */
  readonly secret: { readonly namespace: string; readonly name: string };
  /** DNS names and IP addresses under which the cluster reaches the server, such as `api.sluice-system.svc`. */
  readonly names: readonly string[];
  readonly clock: Clock;
  /** Called with all certificates that replace others, of which `caBundleOf` returns what clients must trust. */
  readonly onChange: (certificates: ServingCertificates) => void;
  /** Called with failures, after which the present certificates stay in use and the next check is sooner. */
  readonly onError: (error: unknown) => void;
}

/** Certificates that are renewed in time. */
export interface KeptServingCertificates {
  readonly current: ServingCertificates;
  stop(): void;
}

/** Far shorter than a new authority waits before it signs, so that all replicas trust it by then. */
const CHECK_INTERVAL_MS = 10 * 60_000;
const RETRY_INTERVAL_MS = 30_000;

/**
 * Issues the certificates of a server to which a cluster connects, keeps them in a Secret, and renews them. Replicas share the Secret: the
 * first one that notices what is due issues it, and the others use it. Rejects if there are no certificates to begin with.
 */
export async function keepServingCertificates(
  options: KeepServingCertificatesOptions,
): Promise<KeptServingCertificates> {
  const { clock, onChange, onError } = options;
  let current = await checkSecret(options);
  let stopped = false;
  let cancel: () => void = () => undefined;
  const check = async () => {
    let delayMs = CHECK_INTERVAL_MS;
    try {
      const next = await checkSecret(options);
      const isChanged = JSON.stringify(next) !== JSON.stringify(current);
      current = next;
      if (isChanged && !stopped) onChange(next);
    } catch (error) {
      onError(error);
      delayMs = RETRY_INTERVAL_MS;
    }
    if (!stopped) cancel = clock.schedule(delayMs, () => void check());
  };
  cancel = clock.schedule(CHECK_INTERVAL_MS, () => void check());
  return {
    get current() {
      return current;
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}

/** Returns the certificates of the Secret, after it has been brought up to date. */
function checkSecret(options: KeepServingCertificatesOptions): Promise<ServingCertificates> {
  const { client, secret: key, names, clock, onError } = options;
  return retryConflicts(
    async () => {
      const secret = await client.find(secretKind, key);
      const present = secret === undefined ? undefined : readable(secret, onError);
      const next = await renewServingCertificates(present, { names, nowMs: clock.now() });
      if (next === present) return next;
      const data = writeServingSecret(next);
      if (secret !== undefined) await client.update(secretKind, { ...secret, data });
      else await client.create(secretKind, { metadata: key, type: 'kubernetes.io/tls', data });
      return next;
    },
    // Another replica was faster.
    { isConflict: (error) => isSluiceError(error, 'Conflict') || isSluiceError(error, 'AlreadyExists') },
  );
}

/** The certificates of a Secret. Unreadable ones are reported and replaced: no server can use them. */
function readable(
  secret: Parameters<typeof readServingSecret>[0],
  onError: (error: unknown) => void,
): ServingCertificates | undefined {
  try {
    return readServingSecret(secret);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    onError(error);
    return undefined;
  }
}
