import { SluiceError } from '../../foundation/sluice-error.ts';

/** The durations of client-go. Milliseconds. */
export const DEFAULT_ELECTION_TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };

export interface ElectionTimes {
  /**
   * How long another candidate waits after it last saw the record change, before it acquires the lease. Whole seconds, since the record
   * contains it in seconds.
   */
  readonly leaseDurationMs: number;
  /**
   * How long after the start of its last successful renewal a leader considers itself one. The difference to the lease duration is what the
   * rates of two clocks may differ.
   */
  readonly renewDeadlineMs: number;
  /** Between two renewals, and at least between two attempts. */
  readonly retryPeriodMs: number;
}

export interface ElectionConfig extends ElectionTimes {
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Of this candidate; no two processes, also not in succession, may have the same. */
  readonly identity: string;
}

/** The jitter of candidates: an attempt is up to this multiple of the retry period late, so that they do not collide. */
export const JITTER_FACTOR = 1.2;

/** Rejects durations with which two leaders or no leader would be possible: InvalidInput. */
export function checkElectionConfig(config: ElectionConfig): void {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs, identity, name } = config;
  const refuse = (cause: string) => {
    throw new SluiceError('InvalidInput', `cannot elect a leader by Lease ${JSON.stringify(name)}: ${cause}`);
  };
  if (identity === '') refuse('the identity of the candidate is empty');
  if (!(retryPeriodMs > 0)) refuse('the retry period must be more than 0 ms');
  if (!(renewDeadlineMs > retryPeriodMs * JITTER_FACTOR))
    refuse(`the renew deadline (${renewDeadlineMs} ms) must be more than ${JITTER_FACTOR} times the retry period`);
  if (!(leaseDurationMs > renewDeadlineMs))
    refuse(`the lease duration (${leaseDurationMs} ms) must be more than the renew deadline (${renewDeadlineMs} ms)`);
  if (leaseDurationMs % 1000 !== 0) refuse(`the lease duration (${leaseDurationMs} ms) must be whole seconds`);
}
