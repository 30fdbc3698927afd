import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { EventRecorder } from '../event-recorder.ts';
import type { ElectionTimes } from './election-config.ts';

export interface LeaderElectorOptions extends Partial<ElectionTimes> {
  /** Needs the rights to get, list, watch, create and update the Lease. Without list and watch, a release is noticed later. */
  readonly client: Client;
  readonly clock: Clock;
  /** Namespace and name of the Lease. */
  readonly namespace: string;
  readonly name: string;
  /** Default `<host name>_<UUID>`. No two processes, also not in succession, may have the same. */
  readonly identity?: string;
  /**
   * The work of the leader. It has ended when the promise settles, which has to be soon after the signal aborts: until then this candidate
   * does not lead again. If it ends before, or fails, the candidate releases the lease and withdraws.
   */
  readonly onStartedLeading: (signal: AbortSignal) => Promise<void>;
  /** Called when the candidate has stopped leading, before the lease is released. */
  readonly onStoppedLeading?: () => void;
  /** Called when another candidate, or none, is known to hold the lease. */
  readonly onNewLeader?: (identity: string | undefined) => void;
  /** Called with failed requests, which are tried again. */
  readonly onError?: (error: unknown) => void;
  /** Receives events about the Lease with the reason LeaderElection. */
  readonly recorder?: EventRecorder;
  /** Milliseconds of a clock that is never set. Default `performance.now`. */
  readonly monotonicNow?: () => number;
  /** A number from 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
}
