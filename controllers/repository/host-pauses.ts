import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** A longer Retry-After counts as this. */
const MAX_PAUSE_MS = 3_600_000;

interface Pause {
  /** Another object under the same name, or another address in it, may have another host. */
  readonly uid: string | undefined;
  readonly address: string | undefined;
  readonly error: unknown;
  /** In running time. */
  readonly since: number;
  readonly milliseconds: number;
}

/** Repositories whose hosts requested a pause by Retry-After. */
export class HostPauses {
  readonly #clock: Clock;
  readonly #pauses = new Map<string, Pause>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records the pause that a failure requests, if it does. */
  note(repository: Repository, error: unknown): void {
    const seconds = retryAfterOf(error);
    if (seconds === undefined) return;
    const place = placeOf(repository);
    const milliseconds = Math.min(seconds * 1000, MAX_PAUSE_MS);
    this.#pauses.set(keyText(keyOf(repository)), { ...place, error, since: this.#clock.monotonic(), milliseconds });
  }

  /** Throws the failure again while the pause lasts. */
  check(repository: Repository): void {
    const key = keyText(keyOf(repository));
    const pause = this.#pauses.get(key);
    if (pause === undefined) return;
    const isOver = this.#clock.monotonic() - pause.since >= pause.milliseconds;
    const { uid, address } = placeOf(repository);
    if (!isOver && pause.uid === uid && pause.address === address) throw pause.error;
    this.#pauses.delete(key);
  }

  forget(key: ObjectKey): void {
    this.#pauses.delete(keyText(key));
  }
}

function placeOf({ metadata, spec }: Repository): Pick<Pause, 'uid' | 'address'> {
  return { uid: metadata.uid, address: spec.git?.repo };
}

function retryAfterOf(error: unknown): number | undefined {
  const details: unknown = isSluiceError(error) ? error.details : undefined;
  if (typeof details !== 'object' || details === null || !('retryAfter' in details)) return undefined;
  return typeof details.retryAfter === 'number' && details.retryAfter > 0 ? details.retryAfter : undefined;
}
