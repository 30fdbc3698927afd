import type { Clock } from '../../src/foundation/clock.ts';
import { elapsed } from '../../src/foundation/elapsed.ts';
import { Mutex } from '../../src/foundation/mutex.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { DiskUse, GitRepository } from '../../src/git/git-repository.ts';
import { gitDisk } from '../../src/git/process/git-operations.ts';

const HOUR = 3_600_000;
/** Milliseconds between two looks at what a repository takes on disk. */
const LOOK_EVERY = 600_000;
/** So long garbage stays, and so long where the budget is exceeded. */
const DROP_AFTER = 14 * 24 * HOUR;
const DROP_SOON_AFTER = HOUR;

/** From when on a repository that nobody else looks after is packed, and when one of somebody else: where git itself would do it. */
const OWN_NEED = { looseObjects: 1000, packs: 20 };
const FOREIGN_NEED = { looseObjects: 6700, packs: 50 };

export interface MaintainerOptions {
  readonly clock: Clock;
  /** Milliseconds between two runs on a repository of our own that does not need one before. */
  readonly interval: number;
  /** What all repositories of our own may take, in bytes, before less is kept; undefined for any. */
  readonly budget: number | undefined;
}

/** What is maintained: a mirror or a repository that Sluice keeps (`own`), or one on this machine that others look after. */
export interface Maintained {
  readonly name: string;
  readonly git: GitRepository;
  readonly isOwn: boolean;
  /** Told what went wrong, or that the budget is exceeded. */
  tell(reason: 'MaintenanceFailed' | 'DiskBudgetExceeded', error: unknown): void;
}

interface State {
  readonly end: AbortController;
  lookedAt: number | undefined;
  ranAt: number;
  bytes: number;
  run: Promise<void> | undefined;
}

/** Keeps repositories small and fast in the background: one at a time in this process, however many there are. */
export class Maintainer {
  readonly #options: MaintainerOptions;
  readonly #turn = new Mutex();
  readonly #states = new Map<string, State>();

  constructor(options: MaintainerOptions) {
    this.#options = options;
  }

  /** Looks whether a repository needs anything, if the last look is long enough ago. Returns at once. */
  consider(key: string, subject: Maintained): void {
    const { clock } = this.#options;
    if (!subject.git.capabilities.maintain) return;
    const now = clock.now();
    const state = this.#states.get(key) ?? {
      ...{ end: new AbortController(), lookedAt: undefined, ranAt: now, bytes: 0, run: undefined },
    };
    this.#states.set(key, state);
    if (state.run !== undefined || (state.lookedAt !== undefined && !elapsed(now, state.lookedAt, LOOK_EVERY))) return;
    state.lookedAt = now;
    state.run = this.#turn
      .run(() => this.#look(state, subject))
      .catch((error: unknown) => {
        // Packing only saves space and time; the repository is as good without it.
        if (!state.end.signal.aborted) subject.tell('MaintenanceFailed', error);
      })
      .finally(() => {
        state.run = undefined;
      });
  }

  /** Resolves when nothing runs for a repository. */
  async idle(key: string): Promise<void> {
    await this.#states.get(key)?.run;
  }

  /** Throws LimitExceeded if the budget leaves nothing for one more repository. */
  expectBudget(): void {
    const { budget } = this.#options;
    if (budget !== undefined && this.#total() > budget) throw overBudget(this.#total(), budget, 'no mirror is added');
  }

  /** Ends what runs for a repository, and forgets it. */
  async forget(key: string, name: string): Promise<void> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    gitDisk.tell({ repository: name, bytes: undefined });
    state?.end.abort();
    await state?.run;
  }

  async #look(state: State, subject: Maintained): Promise<void> {
    const { clock, budget, interval } = this.#options;
    const { git, isOwn } = subject;
    const { signal } = state.end;
    if (signal.aborted) return;
    const use = await git.diskUse();
    this.#note(state, subject, use);
    const isOver = isOwn && budget !== undefined && this.#total() > budget;
    const isDue = isOwn && elapsed(clock.now(), state.ranAt, interval);
    if (isOver || isDue || isNeeded(use, isOwn)) {
      state.ranAt = clock.now();
      const dropAfter = isOver ? DROP_SOON_AFTER : DROP_AFTER;
      await git.maintain(isOwn ? { signal, dropAfter, pressed: isOver } : { signal });
      this.#note(state, subject, await git.diskUse());
    }
    if (isOver && this.#total() > budget)
      subject.tell('DiskBudgetExceeded', overBudget(this.#total(), budget, 'what is not needed goes after an hour'));
  }

  #note(state: State, { name, isOwn }: Maintained, { bytes }: DiskUse): void {
    state.bytes = isOwn ? bytes : 0;
    if (!state.end.signal.aborted) gitDisk.tell({ repository: name, bytes });
  }

  #total(): number {
    let total = 0;
    for (const { bytes } of this.#states.values()) total += bytes;
    return total;
  }
}

function isNeeded({ looseObjects, packs }: DiskUse, isOwn: boolean): boolean {
  const need = isOwn ? OWN_NEED : FOREIGN_NEED;
  return looseObjects >= need.looseObjects || packs >= need.packs;
}

function overBudget(total: number, budget: number, consequence: string): SluiceError {
  const mib = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;
  return new SluiceError(
    'LimitExceeded',
    `mirrors and repositories kept by Sluice take ${mib(total)}, the disk budget is ${mib(budget)}: ${consequence}. Unregister some, or raise --disk-budget`,
  );
}
