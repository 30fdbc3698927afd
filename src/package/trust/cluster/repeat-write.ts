import { retryConflicts } from '../../../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';

/** Codes of a write to an object that another writer has changed, created or deleted. */
const LOST_RACES = ['Conflict', 'AlreadyExists', 'NotFound'] as const;
/** Codes of failures that often pass at once. Writes of packages wait for the ledger, and would fail with it. */
const PASSING_FAILURES = ['Internal', 'Unavailable', 'TooManyRequests'] as const;
/** Milliseconds after which a write is not repeated any more; it is in the background. */
const MAX_WRITE_MS = 8000;

/**
 * Runs a write until it succeeds, while it fails for reasons that pass. `lostRace` is true if another writer may have been faster, so that
 * the object has to be read first.
 */
export async function repeatWrite(clock: Clock, attempt: (lostRace: boolean) => Promise<void>): Promise<void> {
  const startedAt = clock.monotonic();
  let lostRace = false;
  const isConflict = (error: unknown) => {
    // A request without a response may have been carried out.
    const isLost = [...LOST_RACES, 'Timeout' as const].some((code) => isSluiceError(error, code));
    lostRace ||= isLost;
    const isPassing = isLost || PASSING_FAILURES.some((code) => isSluiceError(error, code));
    return isPassing && clock.monotonic() - startedAt < MAX_WRITE_MS;
  };
  await retryConflicts(() => attempt(lostRace), { isConflict });
}
