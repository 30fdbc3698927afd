import { setTimeout } from 'node:timers/promises';
import { isSluiceError } from '../sluice-error.ts';

/** Maximum number of retries of a write after a conflict with another writer. */
export const MAX_CONFLICT_RETRIES = 5;
/** Milliseconds before the first retry, doubling, of which a random part between half and all is waited. */
const BASE_DELAY_MS = 10;

export interface ConflictRetryOptions {
  /** Ends the retries with the request that they are for. */
  readonly signal?: AbortSignal | undefined;
  /** Selects the errors for which a retry makes sense. Default: Conflict. */
  readonly isConflict?: (error: unknown) => boolean;
  /** Runs each retry, such as one at a time with the retries of other requests for the same object. */
  readonly runRetry?: <Result>(retry: () => Promise<Result>) => Promise<Result>;
  readonly random?: () => number;
}

/** Milliseconds to wait before a retry, counted from 1. Writers that collided must not meet again. */
export function conflictDelayMs(retry: number, random: () => number = Math.random): number {
  const full = BASE_DELAY_MS * 2 ** (retry - 1);
  return full / 2 + (full / 2) * random();
}

/**
 * Runs an attempt that reads, changes and writes, and repeats it while other writers are faster: at most MAX_CONFLICT_RETRIES times, after
 * a growing random pause, and not after the signal aborts. Throws the last conflict, and every other error at once.
 */
export async function retryConflicts<Result>(
  attempt: () => Promise<Result>,
  {
    signal,
    isConflict = (error) => isSluiceError(error, 'Conflict'),
    runRetry = (run) => run(),
    random,
  }: ConflictRetryOptions = {},
): Promise<Result> {
  for (let retry = 1; ; retry += 1) {
    try {
      return await (retry === 1 ? attempt() : runRetry(attempt));
    } catch (error) {
      if (retry > MAX_CONFLICT_RETRIES || !isConflict(error) || signal?.aborted === true) throw error;
      await setTimeout(conflictDelayMs(retry, random), undefined, signal === undefined ? {} : { signal }).catch(() => {
        throw error;
      });
    }
  }
}
