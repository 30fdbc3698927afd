import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { backoffDelay, sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { WatchEvent } from '../../resource/storage/storage.ts';

export interface ResumedWatchOptions<T extends KubernetesObject> {
  /** Opens a watch of everything after a version. It ends without an error when the server ends it; Timeout if the server is silent. */
  readonly watch: (resourceVersion: string) => AsyncIterable<WatchEvent<T>>;
  /** The version of the server now. */
  readonly present: () => Promise<string>;
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
 * One watch that lasts until its signal aborts or it fails. A kube-apiserver ends every watch after some minutes, and when it stops: the next
 * watch begins at the last version that was delivered.
 *
 * A kube-apiserver sends no bookmark where nothing changes in the cluster. A watch that was silent for too long is therefore opened again
 * once the server has reported its version, and a BOOKMARK shows the reader that the watch works. A server whose version went back, such
 * as one that was restored from a backup, is Expired: it would accept the watch and deliver nothing. Other errors are thrown: the caller
 * decides when to try again.
 */
export async function* resumedWatch<T extends KubernetesObject>(
  options: ResumedWatchOptions<T>,
): AsyncGenerator<WatchEvent<T>> {
  const { watch, present, signal, clock, random = Math.random } = options;
  let version = options.resourceVersion;
  expectVersion(version);
  for (let shortOnes = 0; !signal.aborted; ) {
    const start = clock.monotonic();
    let progressed = false;
    try {
      for await (const event of watch(version)) {
        version = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
        progressed = true;
        yield event;
      }
    } catch (error) {
      if (!isSluiceError(error, 'Timeout')) throw error;
      expectReached(await present(), version);
      if (!signal.aborted) yield { type: 'BOOKMARK', resourceVersion: version };
      continue;
    }
    shortOnes = progressed || clock.monotonic() - start >= SHORT_WATCH_MS ? 0 : shortOnes + 1;
    if (shortOnes > 0) await sleep(clock, backoffDelay(shortOnes, { ...BACKOFF, random }), signal);
  }
}

/** Kubernetes reports BadRequest for a version that is no number. */
function expectVersion(version: string): void {
  if (!/^\d{1,20}$/.test(version))
    throw new SluiceError('Expired', `resource version ${JSON.stringify(version)} is not of this server; list again`);
}

function expectReached(present: string, version: string): void {
  expectVersion(present);
  if (BigInt(present) < BigInt(version))
    throw new SluiceError(
      'Expired',
      `the server is at resource version ${present}, before ${version}: it was restored from a backup; list again`,
    );
}
