import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';

/**
 * The one rule for watches that deliver nothing: the connection to a server ends them after `QUIET_WATCH_MS`, and an informer would after
 * `STUCK_WATCH_MS`, if a client did not. A kube-apiserver sends a bookmark after 60 to 75 s, and leaves single ones out where nothing
 * changes, so that two periods are no failure.
 */
export const QUIET_WATCH_MS = 150_000;
export const STUCK_WATCH_MS = 180_000;

/** The error of a watch that began and then delivered nothing for too long: no failure if the next one begins. */
export function quietWatch(message: string): SluiceError {
  return new SluiceError('Timeout', message, { details: { isQuietWatch: true } });
}

export function isQuietWatch(error: unknown): boolean {
  return (
    isSluiceError(error, 'Timeout') && (error.details as { isQuietWatch?: unknown } | undefined)?.isQuietWatch === true
  );
}
