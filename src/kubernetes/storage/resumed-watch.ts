import { backoffDelay, sleep } from '../../controller/backoff.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { WatchEvent } from '../../resource/storage/storage.ts';

export interface ResumedWatchOptions<T extends KubernetesObject> {
  /** Opens a watch of everything after a version. It ends without an error when the server ends it. */
  readonly watch: (resourceVersion: string) => AsyncIterable<WatchEvent<T>>;
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
}

/** A watch that ends sooner, without an event, delays the next one, so that a faulty server is not requested without a pause. */
const SHORT_WATCH_MS = 1000;
const BACKOFF = { base: 100, max: 30_000 };

/**
 * One watch that lasts until its signal aborts or it fails: a kube-apiserver ends every watch after some minutes, or when it stops, and this
 * opens the next one from the last version that was delivered. Errors are thrown: the caller decides how often it tries again.
 */
export async function* resumedWatch<T extends KubernetesObject>(
  options: ResumedWatchOptions<T>,
): AsyncGenerator<WatchEvent<T>> {
  const { watch, signal, clock, random = Math.random } = options;
  let version = options.resourceVersion;
  // Kubernetes reports BadRequest for it.
  if (!/^\d{1,20}$/.test(version))
    throw new SluiceError('Expired', `resource version ${JSON.stringify(version)} is not of this server; list again`);
  for (let shortOnes = 0; !signal.aborted; ) {
    const start = clock.now();
    let progressed = false;
    for await (const event of watch(version)) {
      version = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
      progressed = true;
      yield event;
    }
    shortOnes = progressed || clock.now() - start >= SHORT_WATCH_MS ? 0 : shortOnes + 1;
    if (shortOnes > 0) await sleep(clock, backoffDelay(shortOnes, { ...BACKOFF, random }), signal);
  }
}
