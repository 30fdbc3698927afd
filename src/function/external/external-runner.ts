/** A function outside of this process: what to run, and the ResourceList that it reads. */
export interface ExternalCall {
  /** The image or program in the Kptfile; exactly one of the two. The image is complete, with registry and tag. */
  readonly image?: string;
  readonly exec?: string;
  /** A ResourceList as YAML. */
  readonly input: string;
}

export interface ExternalResult {
  readonly exitCode: number;
  /** A ResourceList as YAML, if the function succeeded. */
  readonly stdout: string;
  /** Its standard error, up to a bound. */
  readonly stderr: string;
}

/** Runs functions outside of this process. */
export interface ExternalRunner {
  /**
   * Returns why it cannot run this function here, with the next step; undefined if it can. Starts no process of the function.
   */
  refusal(call: Omit<ExternalCall, 'input'>): Promise<string | undefined>;
  /**
   * Runs the function to its end. An exit code other than 0 is a result. Rejects with Timeout, with LimitExceeded above the bounds of
   * output, with Unavailable where `refusal` returns a reason; no process of the function remains in any case.
   */
  run(call: ExternalCall, signal: AbortSignal): Promise<ExternalResult>;
}
