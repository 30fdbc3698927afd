import type { Clock } from '../../foundation/time/clock.ts';
import type { ObjectSigner } from '../git-repository.ts';
import type { GitNetwork } from '../network/git-network.ts';
import type { Quarantine } from './git-process.ts';

/** In milliseconds. */
export interface GitTimeouts {
  /** Reading objects without any progress, and one ref transaction. */
  readonly local: number;
  /** Listing the refs of a remote. */
  readonly listRemote: number;
  readonly fetch: number;
  readonly push: number;
  readonly maintain: number;
  /** Milliseconds for which a lock file must be unchanged before it counts as left by a crash. */
  readonly staleLock: number;
  /**
   * Milliseconds for which this process must have observed a file unchanged before it counts as left by a crash, and the time between
   * steps of maintenance.
   */
  readonly leftBehind: number;
  /** Milliseconds for which idle processes are kept. */
  readonly idle: number;
}

export const DEFAULT_TIMEOUTS: GitTimeouts = {
  local: 30_000,
  listRemote: 60_000,
  fetch: 600_000,
  push: 120_000,
  maintain: 600_000,
  staleLock: 60_000,
  leftBehind: 3_600_000,
  idle: 60_000,
};

export interface EngineOptions {
  readonly clock: Clock;
  /** Milliseconds that this process has been running; default `performance.now()`. Set by tests. */
  readonly runningTime?: (() => number) | undefined;
  readonly timeouts: GitTimeouts;
  readonly signer?: ObjectSigner | undefined;
  /** Hosts that Sluice may connect to, and authorities that it trusts. */
  readonly network: GitNetwork;
  /** `git` uses git for fetch, listing and push, in place of Sluice's own client. */
  readonly transport?: 'auto' | 'git' | undefined;
  /** Ref transactions of this many updates and more are written as one new `packed-refs`. Lowered by tests. */
  readonly packRefsFrom?: number | undefined;
  /** False if writes need not survive a crash of the machine: for mirrors that are repaired when they are damaged. */
  readonly durable?: boolean | undefined;
  /** Objects of a push that is not accepted yet, for a hook. */
  readonly quarantine?: Quarantine | undefined;
}
