/** The request of a reconciler after a success. */
export interface ReconcileResult {
  /** Reconcile again after this many milliseconds, unless an event arrives before. */
  readonly requeueAfter?: number;
  /** Human-readable reason for the wait. */
  readonly reason?: string;
}

export interface ReconcileContext {
  /** Aborts when the time for one reconciliation is over or the manager stops. Pass it on to everything that waits. */
  readonly signal: AbortSignal;
  /** Failures of this request in a row before this attempt. */
  readonly failures: number;
}

/**
 * Moves the actual state closer to the desired state of one object. It receives no event: it reads the current state,
 * and is idempotent. A thrown error causes a retry with backoff, a TerminalError none until an object changes.
 */
export type Reconciler<Request> = (
  request: Request,
  context: ReconcileContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: a reconciler that requests nothing returns nothing
) => Promise<ReconcileResult | void>;

/** A failure that another attempt cannot mend: only a change of the input can. */
export class TerminalError extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'TerminalError';
  }
}
