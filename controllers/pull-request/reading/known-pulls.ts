import type { PullRequest } from '../../../src/forge/forge.ts';
import { isBatchBranch } from '../batch/batch-name.ts';

export interface KnownPull {
  readonly pull: PullRequest;
  /** When this state was read last, in milliseconds of running time. */
  readonly readMs: number;
  /** A change that has not been looked at, since it seemed to be an own one. */
  readonly isUnseen: boolean;
}

/** The pull requests that are known, one of each head branch and the last merged one: by branch and by number. */
export class KnownPulls {
  readonly #byBranch = new Map<string, KnownPull>();
  /** Head branches by number. */
  readonly #branches = new Map<number, string>();
  /** Head branches of shared pull requests. */
  readonly #shared = new Set<string>();
  readonly #merged = new Map<string, { readonly pull: PullRequest; readonly isPassedOver: boolean }>();

  of(branch: string): KnownPull | undefined {
    return this.#byBranch.get(branch);
  }

  withNumber(number: number): KnownPull | undefined {
    return this.#byBranch.get(this.#branches.get(number) ?? '');
  }

  /** The shared pull requests of the branches that begin with this. */
  sharedWith(prefix: string): readonly PullRequest[] {
    const branches = [...this.#shared].filter((branch) => branch.startsWith(prefix));
    return branches.flatMap((branch) => this.#byBranch.get(branch)?.pull ?? []);
  }

  /** Numbers of the open ones. */
  *open(): Generator<number> {
    for (const { pull } of this.#byBranch.values()) if (pull.state === 'open') yield pull.number;
  }

  get hasUnseen(): boolean {
    return [...this.#byBranch.values()].some(({ isUnseen }) => isUnseen);
  }

  /** The last one of a branch that was merged, unless it was passed over. */
  mergedOf(branch: string): PullRequest | undefined {
    const known = this.#merged.get(branch);
    return known?.isPassedOver === true ? undefined : known?.pull;
  }

  /** Returns whether the last one of its branch that was merged was another one before. */
  noteMerged(pull: PullRequest): boolean {
    const known = this.#merged.get(pull.head.branch);
    const isSame = known?.pull.number === pull.number;
    if (pull.state !== 'merged' || (known !== undefined && known.pull.number > pull.number)) return false;
    this.#merged.set(pull.head.branch, { pull, isPassedOver: isSame && known.isPassedOver });
    return !isSame;
  }

  passOver(branch: string): void {
    const known = this.#merged.get(branch);
    if (known !== undefined) this.#merged.set(branch, { ...known, isPassedOver: true });
  }

  set(known: KnownPull): void {
    const { head, number } = known.pull;
    this.#forgetNumber(head.branch);
    this.#byBranch.set(head.branch, known);
    this.#branches.set(number, head.branch);
    if (isBatchBranch(head.branch)) this.#shared.add(head.branch);
  }

  /** Puts a copy in the place of a pull request, so that callers who compare look again. Returns its branch. */
  lookAgain(known: KnownPull): string {
    this.set({ ...known, pull: { ...known.pull } });
    return known.pull.head.branch;
  }

  delete(branch: string): void {
    this.#forgetNumber(branch);
    this.#byBranch.delete(branch);
    this.#merged.delete(branch);
    this.#shared.delete(branch);
  }

  #forgetNumber(branch: string): void {
    const number = this.#byBranch.get(branch)?.pull.number;
    // Users may rename the branch of a pull request, which has the number then.
    if (number !== undefined && this.#branches.get(number) === branch) this.#branches.delete(number);
  }
}
