/** What a reconciler requests after a success. */
export interface ReconcileResult {
  /** Reconcile again after this many milliseconds, if nothing happens before. */
  readonly requeueAfter?: number;
  /** What is waited for, for people. */
  readonly reason?: string;
}

export interface ReconcileContext {
  /** Aborts when the time for one reconciliation is over or the manager stops. Pass it on to everything that waits. */
  readonly signal: AbortSignal;
  /** Failures of this request in a row before this attempt. */
  readonly failures: number;
}

/**
 * Brings the world closer to what one object requires. It is given no event: it reads what is there now, and doing it
 * twice changes nothing the second time. A thrown error means another attempt after a growing pause, a TerminalError
 * none until something changes.
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
