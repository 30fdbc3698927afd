import type { Clock } from '../../foundation/clock.ts';
import type { ObjectSigner } from '../git-repository.ts';
import type { GitNetwork } from '../network/git-network.ts';
import type { Quarantine } from './git-process.ts';

/** How long things may take, in milliseconds. */
export interface GitTimeouts {
  /** Reading objects without any progress, and one ref transaction. */
  readonly local: number;
  /** Listing the refs of a remote. */
  readonly listRemote: number;
  readonly fetch: number;
  readonly push: number;
  readonly maintain: number;
  /** How long a lock file must stand unchanged before it counts as left behind by a crash. */
  readonly staleLock: number;
  /** How long this process must have seen a file unchanged before it is taken for left behind, or a step of maintenance for settled. */
  readonly leftBehind: number;
  /** How long kept-open processes stay without work. */
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
  /** Which hosts are connected to, and whose certificates are trusted. */
  readonly network: GitNetwork;
  /** `git` does without the client of this house for fetch, listing and push. */
  readonly transport?: 'auto' | 'git' | undefined;
  /** Ref transactions of so many updates and more are made by one new `packed-refs`. Lowered by tests. */
  readonly packRefsFrom?: number | undefined;
  /** False if nothing need outlive a crash of the machine: for mirrors that are made whole when they are damaged. */
  readonly durable?: boolean | undefined;
  /** Objects of a push that is not accepted yet, for a hook. */
  readonly quarantine?: Quarantine | undefined;
}
