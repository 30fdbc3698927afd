import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';

export interface RefConflict {
  /** The first ref that was not as expected; undefined where a server does not name one. */
  readonly ref: string | undefined;
  /**
   * `moved`: its value is not the expected one; `locked`: another writer has locked it; `collision`: `a` against `a/b`.
   */
  readonly kind: 'moved' | 'locked' | 'collision';
}

/**
 * The expected value of a ref does not match. Nothing was changed. The caller reads again, decides again and retries.
 */
export class RefConflictError extends SluiceError<RefConflict> {
  constructor(conflict: RefConflict, message: string, cause?: unknown) {
    super('Conflict', message, { details: conflict, ...(cause === undefined ? {} : { cause }) });
    this.name = 'RefConflictError';
  }
}

export interface PushRefusal {
  /** The ref that the server refuses; undefined where it refuses the push as a whole. */
  readonly ref: string | undefined;
}

/**
 * A rule of the remote rejects a push: a protected branch, a hook. Nothing was changed. The same push would be rejected again, so it
 * must not be repeated before an administrator of the remote changes the rule.
 */
export class PushRefusedError extends SluiceError<PushRefusal> {
  constructor(refusal: PushRefusal, message: string) {
    super('PushRefused', message, { details: refusal });
    this.name = 'PushRefusedError';
  }
}

/** For a repository without a remote; Sluice repairs mirrors automatically. */
export const HOW_TO_REPAIR =
  'Fetch what is missing from a clone (git fetch --refetch <clone>), or restore a backup; "git fsck" lists all that is damaged';

/** A reachable object cannot be read: a file of the repository is damaged or missing. */
export class DamageError extends SluiceError {
  constructor(message: string, cause?: unknown) {
    super('Corrupt', message, cause === undefined ? {} : { cause });
    this.name = 'DamageError';
  }
}

/** Details of the error of a push whose answer was lost. */
export interface UnknownOutcome {
  readonly outcome: 'unknown';
}

/**
 * The error for a push with an unknown outcome. `pushOutcome` of the repository determines it. The same push can be sent again:
 * once it was applied, its expected values no longer match.
 */
export function unknownOutcome(error: SluiceError): SluiceError<UnknownOutcome> {
  return new SluiceError(error.code, `${error.message}; the outcome is unknown: list its refs`, {
    cause: error,
    details: { outcome: 'unknown' },
  });
}

/** True for a push whose answer was lost. */
export function isUnknownOutcome(error: unknown): error is SluiceError<UnknownOutcome> {
  return isSluiceError(error) && (error.details as Partial<UnknownOutcome> | undefined)?.outcome === 'unknown';
}
