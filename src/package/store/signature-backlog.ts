import { Mutex } from '../../foundation/concurrency/mutex.ts';
import type { RevisionIndex } from '../index/revision-index.ts';
import type { IndexChange } from '../index/state/index-delta.ts';
import type { TrackedRefs } from '../transaction/tracked-refs.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';

/**
 * Keeps the index of a repository up to date with what is no ref: it checks the signatures of statements that were too many to be checked
 * when they were read, in the background, and evaluates revisions again when the trusted keys changed.
 */
export class SignatureBacklog {
  readonly #index: RevisionIndex;
  readonly #refs: TrackedRefs;
  readonly #trust: RepositoryTrust;
  /** Version of the trusted keys that the index shows. */
  #keysVersion: number;
  /** One check at a time; `#checking` is the last one. */
  readonly #checks = new Mutex();
  #checking: Promise<void> = Promise.resolve();
  #running = 0;
  /** Error of the signature checks; the next `continue` throws it, since such problems are reported there. */
  #problem: unknown;
  #closed = false;

  constructor(index: RevisionIndex, refs: TrackedRefs, trust: RepositoryTrust) {
    this.#index = index;
    this.#refs = refs;
    this.#trust = trust;
    this.#keysVersion = trust.version;
  }

  /** True while checks run, which may change revisions. */
  get isChecking(): boolean {
    return this.#running > 0;
  }

  /** Resolves when all that is being checked is checked. */
  get checked(): Promise<void> {
    return this.#checking;
  }

  /** Evaluates all revisions again if the trusted keys changed, in this process or in another one on the data folder. */
  async followKeys(): Promise<IndexChange[]> {
    const version = this.#trust.readVersion();
    if (version === this.#keysVersion) return [];
    this.#keysVersion = version;
    return this.#refs.reassess();
  }

  /** Checks the remaining signatures, after those of the previous call. */
  continue(): void {
    const problem = this.#problem;
    this.#problem = undefined;
    if (problem !== undefined) throw problem;
    if (!this.#index.hasBacklog) return;
    this.#running += 1;
    this.#checking = this.#checks
      .run(() => this.#check())
      .catch((error: unknown) => {
        this.#problem = error;
      })
      .finally(() => {
        this.#running -= 1;
      });
  }

  /** Resolves when no check runs any more. */
  close(): Promise<void> {
    this.#closed = true;
    return this.#checking;
  }

  async #check(): Promise<void> {
    for await (const packages of this.#index.checkBacklog()) {
      if (this.#closed) return;
      await this.#refs.reassess(packages);
    }
  }
}
