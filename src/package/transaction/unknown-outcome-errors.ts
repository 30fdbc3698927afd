import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { UnknownOutcome } from '../../git/errors.ts';

/** A write must be in the ledger before it is acknowledged. */
export function notRecordedError(error: unknown): SluiceError<UnknownOutcome> {
  const message = `the write was committed in Git, and cannot be recorded in the trust ledger: ${messageOf(error)}; Sluice records it when it next reads the repository. Read the revision before you repeat the request`;
  return new SluiceError('Unavailable', message, { cause: error, details: { outcome: 'unknown' } });
}

export function notReadError(error: unknown): SluiceError<UnknownOutcome> {
  return new SluiceError(
    'Unavailable',
    `the write was committed, and its result cannot be read: ${messageOf(error)}; read the revision before you repeat the request`,
    { cause: error, details: { outcome: 'unknown' } },
  );
}
