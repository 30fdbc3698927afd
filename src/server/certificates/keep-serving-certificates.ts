import { Informer } from '../../controller/informer.ts';
import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Secret, secretKind } from '../../resource/kinds/core/secret.ts';
import type { Stored } from '../../resource/object/object.ts';
import { renewServingCertificates, type ServingCertificates } from './serving-certificates.ts';
import { readServingSecret, writeServingSecret } from './serving-secret.ts';

export interface KeepServingCertificatesOptions {
  /** May get, list, watch, create and update the Secret. */
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
  stop(): Promise<void>;
}

/** Far shorter than a new authority waits before it signs, so that all replicas trust it by then. */
const CHECK_INTERVAL_MS = 10 * 60_000;
const RETRY_INTERVAL_MS = 30_000;
/** Between two checks after events: another writer of the Secret may undo each write at once. */
const MIN_INTERVAL_MS = 1000;

/** The certificates of the Secret, and the version of the Secret that has them. */
interface Checked {
  readonly certificates: ServingCertificates;
  readonly version: string;
}

/**
 * Issues the certificates of a server to which a cluster connects, keeps them in a Secret, and renews them. Replicas share the Secret: the
 * first one that notices what is due issues it, and the others use it at once. A Secret that is deleted or cannot be read is issued again.
 * Rejects if there are no certificates to begin with.
 */
export async function keepServingCertificates(
  options: KeepServingCertificatesOptions,
): Promise<KeptServingCertificates> {
  const { client, secret: key, clock, onChange, onError } = options;
  let { certificates: current, version } = await checkSecret(options);
  let stopped = false;
  let running: Promise<void> | undefined;
  let isDue = false;
  let checkedMs = clock.now();
  let cancel: () => void = () => undefined;
  const run = async () => {
    isDue = false;
    checkedMs = clock.now();
    let delayMs = CHECK_INTERVAL_MS;
    try {
      const next = await checkSecret(options);
      const isChanged = JSON.stringify(next.certificates) !== JSON.stringify(current);
      ({ certificates: current, version } = next);
      if (isChanged && !stopped) onChange(current);
    } catch (error) {
      if (!stopped) onError(error);
      delayMs = RETRY_INTERVAL_MS;
    }
    running = undefined;
    schedule(isDue ? MIN_INTERVAL_MS : delayMs);
  };
  const schedule = (delayMs: number) => {
    cancel();
    if (stopped) return;
    cancel = clock.schedule(delayMs, () => {
      running ??= run();
    });
  };
  const selection = { namespace: key.namespace, fieldSelector: `metadata.name=${key.name}` };
  const informer = new Informer({
    ...{ client, clock, selection, kind: secretKind },
    onError: (error) => {
      if (!stopped && !isSluiceError(error, 'Expired')) onError(error);
    },
  });
  informer.addHandler(({ type, object: { metadata } }) => {
    if (stopped || metadata.name !== key.name) return;
    if (type !== 'delete' && metadata.resourceVersion === version) return;
    isDue = true;
    if (running !== undefined) return;
    // The clock may have been set.
    const sinceMs = Math.max(0, clock.now() - checkedMs);
    if (sinceMs >= MIN_INTERVAL_MS) running = run();
    else schedule(MIN_INTERVAL_MS - sinceMs);
  });
  schedule(CHECK_INTERVAL_MS);
  informer.start();
  return {
    get current() {
      return current;
    },
    async stop() {
      stopped = true;
      cancel();
      await informer.stop();
      await running;
    },
  };
}

/** Returns the certificates of the Secret, after it has been brought up to date. */
function checkSecret(options: KeepServingCertificatesOptions): Promise<Checked> {
  const { client, secret: key, names, clock, onError } = options;
  return retryConflicts(
    async () => {
      const secret = await client.find(secretKind, key);
      const present = secret === undefined ? undefined : readable(secret, onError);
      const certificates = await renewServingCertificates(present, { names, nowMs: clock.now() });
      const stored =
        secret !== undefined && certificates === present ? secret : await write(options, secret, certificates);
      return { certificates, version: stored.metadata.resourceVersion };
    },
    // Another replica was faster.
    { isConflict: (error) => isSluiceError(error, 'Conflict') || isSluiceError(error, 'AlreadyExists') },
  );
}

async function write(
  { client, secret: key }: KeepServingCertificatesOptions,
  secret: Stored<Secret> | undefined,
  certificates: ServingCertificates,
): Promise<Stored<Secret>> {
  const data = writeServingSecret(certificates);
  if (secret === undefined) return client.create(secretKind, { metadata: key, type: 'kubernetes.io/tls', data });
  try {
    return await client.update(secretKind, { ...secret, data });
  } catch (error) {
    // Such as an immutable one.
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    const problem = `cannot write new certificates to Secret ${key.namespace}/${key.name}: ${messageOf(error)}`;
    throw new SluiceError('InvalidInput', `${problem}; delete it, and Sluice creates it again`, { cause: error });
  }
}

/** The certificates of a Secret. Unreadable ones are reported and replaced: no server can use them. */
function readable(secret: Secret, onError: (error: unknown) => void): ServingCertificates | undefined {
  try {
    return readServingSecret(secret);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    onError(error);
    return undefined;
  }
}
