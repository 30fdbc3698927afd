import type { PullRequest } from '../../../src/forge/forge.ts';
import { createPacer } from '../../../src/foundation/concurrency/in-slices.ts';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { OwnBranches } from '../../pull-request/own-branch.ts';

/** One that stays open after its proposal has ended is a user's; hosts close most of them by themselves, a moment after the branch is gone. */
const ENDED_MS = 300_000;
/** What was merged after the end of its proposal is looked at once more after that: the controller of proposals has reported it then. */
const REPORTED_MS = 720_000;
/** Those whose proposal has ended that are remembered. */
const MAX_ENDED = 2000;

/** The open pull requests of Sluice's own proposals to one branch, until they become a user's. */
export class ProposalPulls {
  readonly #base: string;
  readonly #isOwn: OwnBranches;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** As they were listed last: no change of the host shows that a proposal has ended. */
  readonly #open = new Map<number, PullRequest>();
  /** Those whose proposal has ended: since when they were found so with a head, in milliseconds of running time, and whether they became a user's. */
  readonly #ended = new LruCache<
    number,
    { readonly head: string; readonly sinceMs: number; readonly isUsers: boolean }
  >({ maxEntries: MAX_ENDED });

  /** Those that were merged after the end of their proposal, with `sinceMs` in milliseconds of running time; undefined once they were looked at. */
  readonly #merged = new Map<number, { readonly pull: PullRequest; readonly sinceMs: number } | undefined>();

  /** `isOwn` is asked again whenever a pull request is looked at: branches are fetched later than they are listed. */
  constructor(
    { base, isOwn }: { readonly base: string; readonly isOwn: OwnBranches },
    clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#base = base;
    this.#isOwn = isOwn;
    this.#clock = clock;
  }

  /**
   * Whether a pull request is one of a user: false for those of proposals, and to other branches. One that stays open after its proposal has ended
   * becomes a user's: until then the checks of the proposal stay. `signal`: see `OwnBranches`.
   */
  async isOfUser(pull: PullRequest, signal?: AbortSignal): Promise<boolean> {
    const { head, base, number, state } = pull;
    if (base.branch !== this.#base) return false;
    const belonging = head.isSameRepository ? await this.#isOwn(pull, signal) : 'none';
    if (belonging !== 'ended') {
      this.#ended.delete(number);
      return belonging === 'none';
    }
    const known = this.#ended.get(number);
    if (state !== 'open') return known?.isUsers === true;
    const nowMs = this.#clock.monotonic();
    const { sinceMs } = known?.head === head.commit ? known : { sinceMs: nowMs };
    const isUsers = nowMs - sinceMs >= ENDED_MS;
    this.#ended.set(number, { head: head.commit, sinceMs, isUsers });
    return isUsers;
  }

  /** Takes over a merged one that is none of a user. */
  async noteMerged(pull: PullRequest): Promise<void> {
    if (this.#merged.has(pull.number) || !(await this.isEnded(pull))) return;
    this.#merged.set(pull.number, { pull, sinceMs: this.#clock.monotonic() });
    for (const [number] of this.#merged) if (this.#merged.size > MAX_ENDED) this.#merged.delete(number);
  }

  /** Whether it is one of a proposal that has ended. */
  async isEnded(pull: PullRequest): Promise<boolean> {
    const { base, head } = pull;
    return base.branch === this.#base && head.isSameRepository && (await this.#isOwn(pull)) === 'ended';
  }

  /** The merged ones whose report is to be looked for. */
  unreported(): readonly PullRequest[] {
    const dueMs = this.#clock.monotonic() - REPORTED_MS;
    return [...this.#merged.values()].flatMap((one) => (one !== undefined && one.sinceMs <= dueMs ? one.pull : []));
  }

  /** The report of a merged one was looked for. */
  settleMerged(number: number): void {
    this.#merged.set(number, undefined);
  }

  /** Takes over one that is not followed as a user's, as it was listed. */
  note(pull: PullRequest): void {
    if (pull.state === 'open' && pull.base.branch === this.#base) this.#open.set(pull.number, pull);
    else this.#open.delete(pull.number);
  }

  /** It is followed as a user's. */
  forget(number: number): void {
    this.#open.delete(number);
  }

  /** Those that have become a user's. */
  async ofUsers(): Promise<readonly PullRequest[]> {
    const found: PullRequest[] = [];
    const pace = createPacer();
    for (const pull of this.#open.values()) {
      await pace();
      if (await this.isOfUser(pull)) found.push(pull);
    }
    return found;
  }
}
