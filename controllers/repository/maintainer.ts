import { Mutex } from '../../src/foundation/concurrency/mutex.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { DiskUse, GitRepository } from '../../src/git/git-repository.ts';
import { gitDisk } from '../../src/git/process/git-operations.ts';

const HOUR_MS = 3_600_000;
/** Interval between two measurements of the disk use of a repository. */
const MEASURE_INTERVAL_MS = 600_000;
/** Milliseconds for which unreachable objects are kept, normally and if the budget is exceeded. */
const KEEP_MS = 14 * 24 * HOUR_MS;
const KEEP_OVER_BUDGET_MS = HOUR_MS;

/** Thresholds for packing a repository: one that only Sluice maintains, and one of other tools, where git itself would pack it. */
const OWN_THRESHOLDS = { looseObjects: 1000, packs: 20 };
const FOREIGN_THRESHOLDS = { looseObjects: 6700, packs: 50 };

export interface MaintainerOptions {
  readonly clock: Clock;
  /** Milliseconds between two runs on a repository of Sluice's own that does not need one earlier. */
  readonly interval: number;
  /** Bytes that Sluice's own repositories may use together; above that, unreachable objects are deleted earlier. Undefined: no limit. */
  readonly budget: number | undefined;
}

/**
 * A repository to maintain: a mirror or a hosted repository (`isOwn`), or one on this machine that other tools
 * maintain.
 */
export interface MaintainedRepository {
  readonly name: string;
  readonly git: GitRepository;
  readonly isOwn: boolean;
  /** Receives failures, and the excess of the budget. */
  report(reason: 'MaintenanceFailed' | 'DiskBudgetExceeded', error: unknown): void;
}

interface State {
  readonly end: AbortController;
  /** In running time. */
  measuredAt: number | undefined;
  ranAt: number;
  bytes: number;
  run: Promise<void> | undefined;
}

/** Packs repositories in the background, one at a time in this process. */
export class Maintainer {
  readonly #options: MaintainerOptions;
  readonly #mutex = new Mutex();
  readonly #states = new Map<string, State>();

  constructor(options: MaintainerOptions) {
    this.#options = options;
  }

  /** Starts a check of a repository, if the last one is long enough ago. Returns at once. */
  startIfDue(key: string, subject: MaintainedRepository): void {
    const { clock } = this.#options;
    if (!subject.git.capabilities.maintain) return;
    const now = clock.monotonic();
    const state = this.#states.get(key) ?? {
      ...{ end: new AbortController(), measuredAt: undefined, ranAt: now, bytes: 0, run: undefined },
    };
    this.#states.set(key, state);
    const isMeasured = state.measuredAt !== undefined && now - state.measuredAt < MEASURE_INTERVAL_MS;
    if (state.run !== undefined || isMeasured) return;
    state.measuredAt = now;
    state.run = this.#mutex
      .run(() => this.#maintain(state, subject))
      .catch((error: unknown) => {
        // Packing only saves space and time; the repository works without it.
        if (!state.end.signal.aborted) subject.report('MaintenanceFailed', error);
      })
      .finally(() => {
        state.run = undefined;
      });
  }

  /** Resolves when no maintenance runs for a repository. */
  async idle(key: string): Promise<void> {
    await this.#states.get(key)?.run;
  }

  /** Throws LimitExceeded if the budget has no room for another repository. */
  checkBudget(): void {
    const { budget } = this.#options;
    if (budget !== undefined && this.#total() > budget) throw overBudget(this.#total(), budget, 'no mirror is added');
  }

  /** Ends the maintenance of a repository, and forgets it. */
  async forget(key: string, name: string): Promise<void> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    gitDisk.publish({ repository: name, bytes: undefined });
    state?.end.abort();
    await state?.run;
  }

  async #maintain(state: State, subject: MaintainedRepository): Promise<void> {
    const { clock, budget, interval } = this.#options;
    const { git, isOwn } = subject;
    const { signal } = state.end;
    if (signal.aborted) return;
    const use = await git.diskUse();
    this.#recordUse(state, subject, use);
    const isOver = isOwn && budget !== undefined && this.#total() > budget;
    const isDue = isOwn && clock.monotonic() - state.ranAt >= interval;
    if (isOver || isDue || isNeeded(use, isOwn)) {
      state.ranAt = clock.monotonic();
      const dropAfter = isOver ? KEEP_OVER_BUDGET_MS : KEEP_MS;
      await git.maintain(isOwn ? { signal, dropAfter, underPressure: isOver } : { signal });
      this.#recordUse(state, subject, await git.diskUse());
    }
    if (isOver && this.#total() > budget)
      subject.report(
        'DiskBudgetExceeded',
        overBudget(this.#total(), budget, 'unneeded objects are deleted after an hour'),
      );
  }

  #recordUse(state: State, { name, isOwn }: MaintainedRepository, { bytes }: DiskUse): void {
    state.bytes = isOwn ? bytes : 0;
    if (!state.end.signal.aborted) gitDisk.publish({ repository: name, bytes });
  }

  #total(): number {
    let total = 0;
    for (const { bytes } of this.#states.values()) total += bytes;
    return total;
  }
}

function isNeeded({ looseObjects, packs }: DiskUse, isOwn: boolean): boolean {
  const need = isOwn ? OWN_THRESHOLDS : FOREIGN_THRESHOLDS;
  return looseObjects >= need.looseObjects || packs >= need.packs;
}

function overBudget(total: number, budget: number, consequence: string): SluiceError {
  const mib = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;
  return new SluiceError(
    'LimitExceeded',
    `mirrors and hosted repositories use ${mib(total)}, the disk budget is ${mib(budget)}: ${consequence}. Unregister some, or raise --disk-budget`,
  );
}
