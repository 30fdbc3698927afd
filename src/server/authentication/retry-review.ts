import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { type ErrorCode, isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { backoffDelay, sleep } from '../../foundation/time/backoff.ts';
import type { Clock } from '../../foundation/time/clock.ts';

export interface RetryReviewOptions {
  readonly clock: Clock;
  /** Ends the review. */
  readonly signal: AbortSignal;
  /** Milliseconds for all attempts. Default 10,000, as in Kubernetes. */
  readonly timeoutMs?: number;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
}

const TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 5;
const BACKOFF = { base: 250, max: 4000 };
/** Failures that pass. A review changes nothing, so that it can be repeated whatever became of it. */
const TEMPORARY: readonly ErrorCode[] = ['Unavailable', 'Timeout', 'TooManyRequests', 'Internal'];

/**
 * Makes a review, and repeats it while its failure can pass. Rejects with the last failure; with Timeout if the review takes too long; and
 * with Unavailable where the cluster refuses to review at all (NotFound, Refused, Unauthenticated), since these are about this server
 * and not about the user whose request it judges.
 */
export async function retryReview<Result>(
  review: (signal: AbortSignal) => Promise<Result>,
  options: RetryReviewOptions,
): Promise<Result> {
  const { clock, signal, timeoutMs = TIMEOUT_MS, random = Math.random } = options;
  const deadline = new AbortController();
  const cancel = clock.schedule(timeoutMs, () => deadline.abort());
  const either = AbortSignal.any([signal, deadline.signal]);
  const ended = () =>
    new SluiceError('Timeout', `the cluster did not complete the review within ${timeoutMs / 1000} s; try again later`);
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await untilEnded(either, () => review(either));
      } catch (error) {
        if (either.aborted) throw ended();
        if (!TEMPORARY.some((code) => isSluiceError(error, code))) throw asUnavailable(error);
        if (attempt === MAX_ATTEMPTS) throw error;
      }
      await sleep(clock, backoffDelay(attempt, { ...BACKOFF, random }), either);
      if (either.aborted) throw ended();
    }
  } finally {
    cancel();
  }
}

function asUnavailable(error: unknown): unknown {
  if (!(error instanceof SluiceError)) return error;
  const advice =
    error.code === 'Refused' ? '; bind the account of this server to ClusterRole system:auth-delegator' : '';
  const message = `the cluster does not review the request: ${error.message}${advice}`;
  return new SluiceError('Unavailable', message, { cause: error });
}
