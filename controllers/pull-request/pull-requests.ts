import { isDeepStrictEqual } from 'node:util';
import type { Forge, PullRequest, PullState, Review } from '../../src/forge/forge.ts';
import { CLOCKS_MS } from '../../src/forge/next-since.ts';
import { type ListReader, SharedLists } from '../../src/forge/shared-lists.ts';
import { untilEnded } from '../../src/foundation/concurrency/until-ended.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { ReportedPull } from '../repository/sync-requests.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import { isLater, isSame } from './compare-pulls.ts';
import { hasOwnName } from './own-branch.ts';
import { ChangedPulls, type ChangesOptions } from './reading/changed-pulls.ts';
import { KnownPulls } from './reading/known-pulls.ts';
import { QueuedNumbers } from './reading/queued-numbers.ts';
import { UpToDateRule } from './reading/up-to-date-rule.ts';

/** Open pull requests that are read at the start. */
const MAX_OPEN = 5000;
/** Those that changed last, in any state, that are read at the start: what ended while no process ran. */
const MAX_RECENT = 100;
/** Earlier pull requests of one branch whose reviews are read. */
const MAX_EARLIER = 5;
const MAX_BRANCHES = 10_000;
/** A change that comes this soon after an own push is taken for its effect, until the next poll. */
const OWN_PUSH_MS = 10_000;
/**
 * The pull requests of one repository to one branch, as they were last read. It holds the open ones, and the last one of each branch that it
 * was asked for. Everything is read once at the start; later only what changed. State is read again before every effect, so that what is
 * here decides only what to look at.
 */
export class PullRequests {
  readonly forge: Forge;
  readonly base: string;
  readonly queued = new QueuedNumbers();
  readonly upToDate: UpToDateRule;
  readonly #clock: Clock;
  readonly #lists: ListReader;
  readonly #changes: ChangedPulls;
  readonly #openMerging: () => Forge;
  #merging: Forge | undefined;
  #loading: Promise<void> | undefined;
  readonly #known = new KnownPulls();
  /** Numbers of pull requests that a user had merged into another branch, by head branch. */
  readonly #moved = new LruCache<string, number>({ maxEntries: MAX_BRANCHES });
  readonly #wanted = new Set<string>();
  /** Reviews that were read together with a pull request. */
  readonly #reviews = new WeakMap<PullRequest, readonly Review[]>();
  /** Times of the last own pushes by head branch, in milliseconds of running time. */
  readonly #pushes = new LruCache<string, number>({ maxEntries: MAX_BRANCHES });
  /** By head branch, oldest first. */
  readonly #earlier = new LruCache<string, readonly number[]>({ maxEntries: MAX_BRANCHES });
  /** What ended on the host before was not read at the start; milliseconds since the epoch. */
  #unreadUntilMs = Number.NEGATIVE_INFINITY;
  /** Branches of which the host was searched for one that had ended. */
  readonly #searched = new Set<string>();
  #unsureMerger: string | undefined;

  /** `lists` is closed with it; by default nothing else reads them. `openMerging` opens the same repository with the rights to merge. */
  constructor(
    forge: Forge,
    base: string,
    clock: Clock,
    {
      lists = new SharedLists(clock).reader(''),
      openMerging = () => forge,
    }: { readonly lists?: ListReader; readonly openMerging?: () => Forge } = {},
  ) {
    this.forge = forge;
    this.base = base;
    this.upToDate = new UpToDateRule(forge, base, clock);
    this.#clock = clock;
    this.#lists = lists;
    this.#changes = new ChangedPulls(forge, { base, maxOpen: MAX_OPEN }, lists, clock);
    this.#openMerging = openMerging;
  }

  /** The repository with the rights to merge, which are used for nothing else. */
  get merging(): Forge {
    this.#merging ??= this.#openMerging();
    return this.#merging;
  }

  async close(): Promise<void> {
    this.#lists.close();
    await this.forge.close();
    await this.#merging?.close();
  }

  /**
   * The open pull request of a branch, else the last one, as it was last read; undefined if there is none. The same object as before means that
   * nothing has changed, its reviews included.
   */
  async ofBranch(branch: string, signal: AbortSignal): Promise<PullRequest | undefined> {
    await this.#load(signal);
    this.#wanted.add(branch);
    return this.#known.of(branch)?.pull;
  }

  /**
   * The same for a proposal without an open one, also where it ended before what was read at the start: then the host is searched, once.
   * `beganMs`: when it was proposed, in milliseconds since the epoch; 0 where that is not known, and -Infinity to search in any case.
   */
  async lastOfBranch(branch: string, beganMs: number, signal: AbortSignal): Promise<PullRequest | undefined> {
    const known = await this.ofBranch(branch, signal);
    // All that had changed since then was read at the start, and may have been dropped with an earlier proposal of the branch.
    const isDropped = known === undefined && this.earlierOf(branch).length > 0;
    const wasRead = beganMs - CLOCKS_MS > this.#unreadUntilMs && !isDropped;
    if (known?.state === 'open' || wasRead || this.#searched.has(branch)) return known;
    const found = await this.forge.find(branch, this.base, signal);
    this.#searched.add(branch);
    if (found !== undefined) this.note(found);
    return this.#known.of(branch)?.pull;
  }

  /** Why no merge is of the user whom the host reports, for sure, as it was last read; undefined where one can be. */
  get unsureMerger(): string | undefined {
    return this.#unsureMerger;
  }

  /** The last one of a branch that was merged, as it was last read: users may have opened another one since. */
  mergedOf(branch: string): PullRequest | undefined {
    return this.#known.mergedOf(branch);
  }

  /** An open one takes the place of the merged one of a branch, which cannot be published. */
  passOver(branch: string): void {
    this.#known.passOver(branch);
  }

  /** The shared pull requests of the branches that begin with this, as they were last read. */
  async sharedWith(prefix: string, signal: AbortSignal): Promise<readonly PullRequest[]> {
    await this.#load(signal);
    return this.#known.sharedWith(prefix);
  }

  /** The pull request of a branch, if it has this number and was read from the host within this time. */
  readWithin(branch: string, number: number, milliseconds: number): PullRequest | undefined {
    const entry = this.#known.of(branch);
    const isRecent = entry?.pull.number === number && this.#clock.monotonic() - entry.readMs <= milliseconds;
    return isRecent ? entry.pull : undefined;
  }

  /** Reads a pull request and its reviews, and takes over whether it is in the merge queue. */
  async state(number: number, signal: AbortSignal): Promise<PullState> {
    const state = await this.forge.state(number, signal);
    this.queued.note(number, state.isQueued === true);
    return state;
  }

  /** Sluice has pushed to a branch, which the host shows some time later. */
  notePush(branch: string): void {
    this.#pushes.set(branch, this.#clock.monotonic());
  }

  /** True if a change waits for the next poll to be looked at. */
  get hasUnseen(): boolean {
    return this.#known.hasUnseen;
  }

  /**
   * Reads what changed since the last call. Returns the head branches of the pull requests that have to be looked at, and whether any has
   * changed, apart from own pushes.
   */
  async poll(
    signal: AbortSignal,
    options: Omit<ChangesOptions, 'open'> = {},
  ): Promise<{
    readonly branches: readonly string[];
    readonly failure?: unknown;
    readonly isChanged: boolean;
    readonly readMs: number;
  }> {
    await this.#load(signal);
    const now = this.#clock.monotonic();
    const wanted = { ...options, open: this.#known.open() };
    const { pulls: updated, again, readMs } = await this.#changes.read(wanted, signal);
    const branches = new Set<string>();
    let isChanged = false;
    for (const number of again) {
      const known = this.#known.withNumber(number);
      if (known === undefined) continue;
      const read = { ...known, isUnseen: false };
      if (this.forge.batchesReads) this.#known.set(read);
      else this.#known.lookAgain(read);
      branches.add(known.pull.head.branch);
    }
    for (const pull of [...updated].reverse()) {
      const { branch } = pull.head;
      if (this.#isRead(pull, readMs)) continue;
      const isOwn = this.#isOwnPush(this.#known.of(branch)?.pull, pull, now);
      if (!this.note(pull)) continue;
      if (!isOwn) {
        branches.add(branch);
        isChanged = true;
      } else {
        const known = this.#known.of(branch);
        if (known !== undefined) this.#known.set({ ...known, isUnseen: true });
        branches.delete(branch);
      }
    }
    if (!this.forge.batchesReads) return { branches: [...branches], isChanged, readMs };
    return { ...(await this.#readChanged(branches, signal)), isChanged, readMs };
  }

  /**
   * Whether this state, which was listed at a time, or a later one is known already. The response to a single request arrives after a list that
   * was requested after it, and is older nevertheless.
   */
  #isRead({ head, number, updatedAt }: PullRequest, listedMs: number): boolean {
    const known = this.#known.of(head.branch);
    if (known?.pull.number !== number || known.readMs <= listedMs) return false;
    return Date.parse(known.pull.updatedAt) >= Date.parse(updatedAt);
  }

  /** Reads the open ones of these branches together with their reviews. Returns the same as `readStates`. */
  async #readChanged(branches: ReadonlySet<string>, signal: AbortSignal) {
    const pulls = [...branches].flatMap((branch) => this.#known.of(branch)?.pull ?? []);
    const open = pulls.filter(({ state }) => state === 'open');
    const others = [...branches].filter((branch) => open.every(({ head }) => head.branch !== branch));
    const read = await this.readStates(
      open.map(({ number }) => number),
      signal,
    );
    return { ...read, branches: [...others, ...read.branches] };
  }

  /**
   * Reads pull requests together with their reviews. Returns the branches of those that have to be looked at, and the first failure, if there is
   * any: what cannot be read now is among them, so that its next reconciliation reads it.
   */
  async readStates(
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<{ readonly branches: readonly string[]; readonly failure?: unknown }> {
    const failures: unknown[] = [];
    const read = async (number: number) => {
      try {
        return await this.#readState(number, signal);
      } catch (failure) {
        // A pull request that a user deleted is a result, which its reconciliation finds.
        if (!isSluiceError(failure, 'NotFound')) failures.push(failure);
        return this.lookAgainAt(new Set([number]));
      }
    };
    const branches = (await Promise.all(numbers.map(read))).flat();
    return { branches, ...(failures.length === 0 ? {} : { failure: failures[0] }) };
  }

  /**
   * What of a reported pull request has to be read: nothing where it is neither shared nor of these branches, or shows what is known already, its
   * reviews where it is otherwise as known, the list where it is another one of such a branch. `head`: it has another head, which a user has pushed, or
   * a push of Sluice that has not returned yet. `pushed` returns the commit that Sluice has pushed to a branch.
   */
  newsOf(
    reported: ReportedPull,
    pushed: ReadonlyMap<string, string | undefined>,
  ): 'nothing' | 'reviews' | 'state' | 'head' | 'list' {
    const { number, isReview, isComment, updatedAt, state, head } = reported;
    const known = this.#known.withNumber(number)?.pull;
    if (known === undefined) return head !== undefined && pushed.has(head.branch) ? 'list' : 'nothing';
    if (!pushed.has(known.head.branch) && !isBatchBranch(known.head.branch)) return 'nothing';
    if (isComment || updatedAt === undefined || head === undefined) return 'state';
    if (state !== (known.state === 'open' ? 'open' : 'closed')) return 'state';
    if (isReview) return 'reviews';
    // The effect of an own push is shown by the next list.
    if (head.commit !== known.head.commit && head.commit !== pushed.get(known.head.branch)) return 'head';
    if (head.commit !== known.head.commit) return 'nothing';
    // Hosts show the head that was pushed before the time of that change; the next list has what others changed meanwhile.
    const isNewer = Date.parse(updatedAt) > Date.parse(known.updatedAt);
    return isNewer && !this.#wasPushed(known.head.branch, this.#clock.monotonic()) ? 'state' : 'nothing';
  }

  /** Makes callers who compare look again at pull requests. Returns their branches. */
  lookAgainAt(numbers: ReadonlySet<number>): readonly string[] {
    return [...numbers]
      .flatMap((number) => this.#known.withNumber(number) ?? [])
      .map((one) => this.#known.lookAgain(one));
  }

  async #readState(number: number, signal: AbortSignal): Promise<string[]> {
    const wasQueued = this.queued.has(number);
    const { pull, reviews } = await this.state(number, signal);
    const { branch } = pull.head;
    const before = this.#known.of(branch)?.pull;
    this.note(pull);
    const known = this.#known.of(branch);
    if (known?.pull.number !== pull.number) return [branch];
    const isSame = known.pull === before && isDeepStrictEqual(this.#reviews.get(before), reviews);
    // A comment of the same second changes nothing that could be compared.
    if (isSame && pull.hasComments === false && this.queued.has(number) === wasQueued) return [];
    // A copy, so that callers who compare look again.
    const now = { ...known.pull, ...(pull.hasComments === undefined ? {} : { hasComments: pull.hasComments }) };
    this.#known.set({ ...known, pull: now, isUnseen: false });
    this.#reviews.set(now, reviews);
    return [branch];
  }

  /** The reviews of a pull request that `ofBranch` returned, where they were read together with it. */
  reviewsOf(pull: PullRequest): readonly Review[] | undefined {
    return this.#reviews.get(pull);
  }

  /** Whether a change can be the effect of an own push. A review at the same time is found by the next poll, which reads it once more. */
  #isOwnPush(known: PullRequest | undefined, pull: PullRequest, now: number): boolean {
    if (known === undefined || !this.#wasPushed(pull.head.branch, now)) return false;
    const { head, updatedAt } = pull;
    return isSame({ ...known, head: { ...known.head, commit: head.commit }, updatedAt }, pull);
  }

  #wasPushed(branch: string, now: number): boolean {
    const at = this.#pushes.get(branch);
    return at !== undefined && now - at <= OWN_PUSH_MS;
  }

  /** Takes over what the host returned of a pull request. Returns whether it differs from what was known. */
  note(pull: PullRequest): boolean {
    const now = this.#clock.monotonic();
    const { branch, isSameRepository } = pull.head;
    this.#unsureMerger = pull.base.unsureMerger;
    if (pull.state !== 'open') this.queued.note(pull.number, false);
    const entry = this.#known.of(branch);
    const known = entry?.pull;
    // Those of users are read by another controller, and would be kept here for as long as the process runs.
    if (!isSameRepository || !(hasOwnName(branch) || this.#wanted.has(branch))) return false;
    if (pull.base.branch !== this.base) {
      // A user has changed what it is merged into: it is none of this branch any more.
      if (known?.number !== pull.number) return false;
      this.forget(branch);
      this.#moved.set(branch, pull.number);
      return true;
    }
    if (known !== undefined && known.number !== pull.number)
      this.#noteEarlier(branch, Math.min(known.number, pull.number));
    if (known === undefined && pull.state !== 'open' && !this.#wanted.has(branch)) return false;
    const isNewMerge = this.#known.noteMerged(pull);
    if (known !== undefined && isLater(known, pull)) return isNewMerge;
    if (entry !== undefined && known !== undefined && isSame(known, pull)) {
      this.#known.set({ ...entry, readMs: now });
      return false;
    }
    if (pull.number === this.#moved.get(branch)) this.#moved.delete(branch);
    this.#known.set({ pull, readMs: now, isUnseen: false });
    this.#changes.note(pull);
    return true;
  }

  /** The number of the pull request of a branch whose base a user has changed since; undefined if there is none. */
  movedOf(branch: string): number | undefined {
    return this.#moved.get(branch);
  }

  /** Numbers of former pull requests of a branch: what reviewers requested there still stands. */
  earlierOf(branch: string): readonly number[] {
    return this.#earlier.get(branch) ?? [];
  }

  /** Drops what is kept of a branch, except that it had a pull request: its proposal has ended, or the host has it no more. */
  forget(branch: string): void {
    const known = this.#known.of(branch)?.pull;
    if (known !== undefined) this.#noteEarlier(branch, known.number);
    this.#wanted.delete(branch);
    this.#moved.delete(branch);
    this.#searched.delete(branch);
    this.#known.delete(branch);
  }

  #noteEarlier(branch: string, number: number): void {
    const known = this.earlierOf(branch);
    if (!known.includes(number)) this.#earlier.set(branch, [...known, number].slice(-MAX_EARLIER));
  }

  async #load(signal: AbortSignal): Promise<void> {
    // Those that wait for it share it, so that none of them may end it; each request has a timeout.
    const load = () => {
      this.#loading ??= this.#readAll(new AbortController().signal).catch((error: unknown) => {
        this.#loading = undefined;
        throw error;
      });
      return this.#loading;
    };
    try {
      await untilEnded(signal, load);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    const { recent, open } = await this.#changes.begin({ maxRecent: MAX_RECENT }, signal);
    for (const { head } of recent) if (hasOwnName(head.branch)) this.#wanted.add(head.branch);
    for (const pull of [...recent].reverse()) this.note(pull);
    for (const pull of open) this.note(pull);
    this.#wanted.clear();
    if (recent.length >= MAX_RECENT) this.#unreadUntilMs = Date.parse(recent.at(-1)?.updatedAt ?? '');
  }
}
