import { SluiceError } from '../foundation/sluice-error.ts';

export interface RefConflict {
  /** The first ref that was not as expected; undefined where a server refused without naming one. */
  readonly ref: string | undefined;
  /** `moved`: another value than expected; `locked`: another writer holds it; `collision`: `a` against `a/b`; `refused`: a server's rule. */
  readonly kind: 'moved' | 'locked' | 'collision' | 'refused';
}

/** An expectation about a ref did not hold. Nothing was changed. Re-read, decide again, retry. */
export class RefConflictError extends SluiceError<RefConflict> {
  constructor(conflict: RefConflict, message: string, cause?: unknown) {
    super('Conflict', message, { details: conflict, ...(cause === undefined ? {} : { cause }) });
    this.name = 'RefConflictError';
  }
}
