import { type ErrorCode, isSluiceError } from '../foundation/sluice-error.ts';
import type { ForgeErrorDetails } from './forge.ts';

/** Only an operator can change what these say; they are tried again now and then. */
const PERMANENT: readonly ErrorCode[] = ['Refused', 'NotFound', 'Unauthenticated', 'InvalidInput', 'Unsupported'];
const PERMANENT_RETRY_MS = 60_000;
/** A host that says "at once" has just refused. */
const MIN_PAUSE_MS = 1000;

/** Milliseconds until the next attempt after a failure that a repetition at once cannot mend; undefined for others. */
export function pauseAfter(error: unknown): number | undefined {
  if (!isSluiceError(error)) return undefined;
  if (error.code === 'TooManyRequests')
    return Math.max(MIN_PAUSE_MS, (error.details as ForgeErrorDetails | undefined)?.retryAfterMs ?? PERMANENT_RETRY_MS);
  return PERMANENT.includes(error.code) ? PERMANENT_RETRY_MS : undefined;
}

/** Whether only an operator, or a user of the host, can change that. A rate limit ends by itself. */
export function isPermanent(error: unknown): boolean {
  return isSluiceError(error) && PERMANENT.includes(error.code);
}
