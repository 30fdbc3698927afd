import { messageOf } from '../../foundation/sluice-error.ts';
import type { AttributedPushes, KeptPush } from './ledger/attributed-pushes.ts';

/** Branches of deleted revisions whose reports are not marked yet, of one registration. */
interface Unmarked {
  readonly repository: string;
  readonly registration: string;
  readonly refs: Set<string>;
}

/**
 * What Git hosts report on the pushes to one repository. The file of the reports can fail while everything else works (a full disk, a
 * lock of another process), and then fails closed: a deletion that could not be marked is kept and tried again, and until it is marked
 * no report on the branch attributes anything.
 */
export class PushReports {
  readonly #pushes: AttributedPushes | undefined;
  readonly #repository: () => string;
  #unmarked: Unmarked[] = [];
  #problem: string | undefined;

  /** `repository` returns the id of the repository, which may get its id later. */
  constructor(pushes: AttributedPushes | undefined, repository: () => string) {
    this.#pushes = pushes;
    this.#repository = repository;
  }

  /** What the Git host reported on pushes to a branch through one registration, newest first. */
  latest(registration: string, ref: string): readonly KeptPush[] {
    if (this.#pushes === undefined) return [];
    this.retry();
    const repository = this.#repository();
    const found = this.#pushes.latest({ repository, registration, ref });
    const isUnmarked = this.#unmarkedOf(repository, registration)?.refs.has(ref) === true;
    return isUnmarked ? found.map((push) => ({ ...push, isSuperseded: true })) : found;
  }

  /**
   * To be called with the branches of revisions that were deleted: reports until now do not explain who pushes them again. Never throws;
   * see `problem`.
   */
  supersede(registration: string, refs: readonly string[]): void {
    if (this.#pushes === undefined || refs.length === 0) return;
    const repository = this.#repository();
    const known = this.#unmarkedOf(repository, registration);
    if (known === undefined) this.#unmarked.push({ repository, registration, refs: new Set(refs) });
    else for (const ref of refs) known.refs.add(ref);
    this.retry();
  }

  /** Marks the reports on deleted revisions that could not be marked before. Never throws; see `problem`. */
  retry(): void {
    if (this.#unmarked.length === 0) return;
    try {
      for (const { refs, ...place } of this.#unmarked) this.#pushes?.supersede(place, [...refs]);
      this.#unmarked = [];
      this.#problem = undefined;
    } catch (error) {
      this.#problem = `reports on pushes to the branches of deleted revisions attribute nothing until they can be marked: ${messageOf(error)}`;
    }
  }

  /** Why reports on deleted revisions could not be marked; undefined if they are. One sentence. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Records that a commit of an unknown pusher was read as the tip of a branch. */
  noteLook(registration: string, ref: string, commit: string): void {
    this.#pushes?.noteLook({ repository: this.#repository(), registration, ref, commit });
  }

  /** The branch at whose tip a commit of an unknown pusher was read first. */
  firstLook(registration: string, commit: string): string | undefined {
    return this.#pushes?.firstLook({ repository: this.#repository(), registration, commit });
  }

  #unmarkedOf(repository: string, registration: string): Unmarked | undefined {
    return this.#unmarked.find((one) => one.repository === repository && one.registration === registration);
  }
}
