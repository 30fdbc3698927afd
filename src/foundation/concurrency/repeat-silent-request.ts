/** Milliseconds for the first attempt; each further one has twice as long, so that one that is only slow responds in the end. */
const FIRST_TIMEOUT_MS = 5000;
const MAX_ATTEMPTS = 4;

/**
 * Runs a request that may be repeated, again while it remains without a response: the connection may have ended at the other side without a
 * notice. Throws every other error at once, and the last one after MAX_ATTEMPTS.
 */
export async function repeatSilentRequest<Result>(
  request: (signal: AbortSignal) => Promise<Result>,
  firstTimeoutMs: number = FIRST_TIMEOUT_MS,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const signal = AbortSignal.timeout(firstTimeoutMs * 2 ** (attempt - 1));
    try {
      return await request(signal);
    } catch (error) {
      if (!signal.aborted || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
