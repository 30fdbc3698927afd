import { isDeepStrictEqual } from 'node:util';
import type { Forge, PullRequest, PullState, Review } from '../../src/forge/forge.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { ReportedPull } from '../repository/sync-requests.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import { pauseAfter } from './pause-after.ts';

/** Open pull requests that are read at the start. */
const MAX_OPEN = 5000;
/** Those that changed last, in any state, that are read at the start: what ended while no process ran. */
const MAX_RECENT = 100;
/** Those that one poll reads. */
const MAX_UPDATED = 1000;
/** Earlier pull requests of one branch whose reviews are read. */
const MAX_EARLIER = 5;
const MAX_BRANCHES = 10_000;
/** Prefix of the branches of proposals. */
const PROPOSED = 'proposed/';
/** Hosts record times in seconds: a change may be one of several until this after it was read. */
const SAME_SECOND_MS = 1000;
/** A change that comes this soon after an own push is taken for its effect, until the next poll. */
const OWN_PUSH_MS = 10_000;
/** Between two reads of the rules of a branch. */
const RULES_MS = 600_000;
const EPOCH = '1970-01-01T00:00:00Z';

interface Entry {
  readonly pull: PullRequest;
  /** The change may be one of several in the same second, which its time does not tell apart: read once more. */
  readonly isFresh: boolean;
  /** When this state was read first, and last; milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly readMs: number;
  /** A change that has not been looked at, since it seemed to be an own one. */
  readonly isUnseen: boolean;
}

/**
 * The pull requests of one repository to one branch, as they were last read. It holds the open ones, and the last one of each branch that it
 * was asked for. Everything is read once at the start; later only what changed. State is read again before every effect, so that what is
 * here decides only what to look at.
 */
export class PullRequests {
  readonly forge: Forge;
  readonly base: string;
  readonly #clock: Clock;
  readonly #openMerging: () => Forge;
  #merging: Forge | undefined;
  #loading: Promise<void> | undefined;
  /** By head branch. */
  readonly #entries = new Map<string, Entry>();
  /** Head branches by number. */
  readonly #branches = new Map<number, string>();
  /** Head branches of shared pull requests. */
  readonly #shared = new Set<string>();
  readonly #wanted = new Set<string>();
  /** Reviews that were read together with a pull request. */
  readonly #reviews = new WeakMap<PullRequest, readonly Review[]>();
  /** Times of the last own pushes by head branch, milliseconds since the epoch. */
  readonly #pushes = new LruCache<string, number>({ maxEntries: MAX_BRANCHES });
  /** By head branch, oldest first. */
  readonly #earlier = new LruCache<string, readonly number[]>({ maxEntries: MAX_BRANCHES });
  /** Whether heads have to contain the base; the time at which its rules were read, milliseconds since the epoch. */
  #upToDate = { isRequired: false, readMs: Number.NEGATIVE_INFINITY };
  /** The time of the last change, by the clock of the host. */
  #since = EPOCH;

  /** `openMerging` opens the same repository with the rights to merge. */
  constructor(forge: Forge, base: string, clock: Clock, openMerging: () => Forge = () => forge) {
    this.forge = forge;
    this.base = base;
    this.#clock = clock;
    this.#openMerging = openMerging;
  }

  /** The repository with the rights to merge, which are used for nothing else. */
  get merging(): Forge {
    this.#merging ??= this.#openMerging();
    return this.#merging;
  }

  async close(): Promise<void> {
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
    return this.#entries.get(branch)?.pull;
  }

  /** The shared pull requests of the branches that begin with this, as they were last read. */
  async sharedWith(prefix: string, signal: AbortSignal): Promise<readonly PullRequest[]> {
    await this.#load(signal);
    const branches = [...this.#shared].filter((branch) => branch.startsWith(prefix));
    return branches.flatMap((branch) => this.#entries.get(branch)?.pull ?? []);
  }

  /** The pull request of a branch, if it has this number and was read from the host within this time. */
  readWithin(branch: string, number: number, milliseconds: number): PullRequest | undefined {
    const entry = this.#entries.get(branch);
    const isRecent = entry?.pull.number === number && this.#clock.now() - entry.readMs <= milliseconds;
    return isRecent ? entry.pull : undefined;
  }

  /** Sluice has pushed to a branch, which the host shows some time later. */
  notePush(branch: string): void {
    this.#pushes.set(branch, this.#clock.now());
  }

  /** The host has refused a merge since the head does not contain the base: some hosts state that rule in no other way. */
  noteBehind(): void {
    this.#upToDate.isRequired = true;
  }

  /** Whether the host requires that a head contains the base before it is merged, as far as is known. */
  get isUpToDateRequired(): boolean {
    return this.#upToDate.isRequired;
  }

  /** The same, with the rules of the branch as they are now or were minutes ago. */
  async requiresUpToDate(signal: AbortSignal): Promise<boolean> {
    const now = this.#clock.now();
    if (now - this.#upToDate.readMs < RULES_MS) return this.#upToDate.isRequired;
    let stated: boolean | undefined;
    try {
      stated = (await this.forge.branchRules(this.base, signal)).requiresUpToDate;
    } catch (error) {
      // The token may not read them. What ends by itself is tried again.
      if (pauseAfter(error) === undefined || isSluiceError(error, 'TooManyRequests')) throw error;
    }
    this.#upToDate = { isRequired: stated ?? this.#upToDate.isRequired, readMs: now };
    return this.#upToDate.isRequired;
  }

  /** True if a change waits for the next poll to be looked at. */
  get hasUnseen(): boolean {
    return [...this.#entries.values()].some(({ isUnseen }) => isUnseen);
  }

  /**
   * Reads what changed since the last call. Returns the head branches of the pull requests that have to be looked at, and whether any has
   * changed, apart from own pushes. What has changed is looked at once more by a call at least `secondLookMs` later.
   */
  async poll(
    signal: AbortSignal,
    secondLookMs = SAME_SECOND_MS,
  ): Promise<{ readonly branches: readonly string[]; readonly failure?: unknown; readonly isChanged: boolean }> {
    await this.#load(signal);
    const now = this.#clock.now();
    // What may have changed again in the same second has to be in the list.
    let since = this.#since;
    for (const { isFresh, pull } of this.#entries.values())
      if (isFresh && pull.updatedAt < since) since = pull.updatedAt;
    const updated = await this.forge.listUpdated(since, MAX_UPDATED, signal);
    const branches = new Set<string>();
    let isChanged = false;
    for (const [branch, entry] of this.#entries) {
      if (!entry.isFresh || now - entry.sinceMs < secondLookMs) continue;
      const read = { ...entry, isFresh: false, isUnseen: false };
      if (this.forge.batchesReads) this.#set(branch, read);
      else this.#lookAgain(read);
      branches.add(branch);
    }
    for (const pull of [...updated].reverse()) {
      const { branch } = pull.head;
      const isOwn = this.#isOwnPush(this.#entries.get(branch)?.pull, pull, now);
      if (!this.note(pull)) continue;
      if (!isOwn) {
        branches.add(branch);
        isChanged = true;
      } else {
        const entry = this.#entries.get(branch);
        if (entry !== undefined) this.#set(branch, { ...entry, isUnseen: true });
        branches.delete(branch);
      }
    }
    if (!this.forge.batchesReads) return { branches: [...branches], isChanged };
    return { ...(await this.#readChanged(branches, signal)), isChanged };
  }

  /** Reads the open ones of these branches together with their reviews. Returns the same as `readStates`. */
  async #readChanged(branches: ReadonlySet<string>, signal: AbortSignal) {
    const pulls = [...branches].flatMap((branch) => this.#entries.get(branch)?.pull ?? []);
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
        return this.#noteState(await this.forge.state(number, signal));
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
   * What of a reported pull request has to be read: nothing where it is none of these branches or shows what is known already, its reviews where
   * it is otherwise as known, the list where it is another one of such a branch. `pushed` returns the commit that Sluice has pushed to a branch.
   */
  newsOf(
    reported: ReportedPull,
    pushed: ReadonlyMap<string, string | undefined>,
  ): 'nothing' | 'reviews' | 'state' | 'list' {
    const { number, isReview, isComment, updatedAt, state, head } = reported;
    const known = this.#entryOf(number)?.pull;
    if (known === undefined) return head !== undefined && pushed.has(head.branch) ? 'list' : 'nothing';
    if (!pushed.has(known.head.branch)) return 'nothing';
    if (isComment || updatedAt === undefined || head === undefined) return 'state';
    if (state !== (known.state === 'open' ? 'open' : 'closed')) return 'state';
    // The effect of an own push is shown by the next list.
    if (head.commit !== known.head.commit && head.commit !== pushed.get(known.head.branch)) return 'state';
    if (isReview) return 'reviews';
    if (head.commit !== known.head.commit) return 'nothing';
    return Date.parse(updatedAt) <= Date.parse(known.updatedAt) ? 'nothing' : 'state';
  }

  /** Makes callers who compare look again at pull requests. Returns their branches. */
  lookAgainAt(numbers: ReadonlySet<number>): readonly string[] {
    return [...numbers].flatMap((number) => this.#entryOf(number) ?? []).map((entry) => this.#lookAgain(entry));
  }

  #entryOf(number: number): Entry | undefined {
    return this.#entries.get(this.#branches.get(number) ?? '');
  }

  #set(branch: string, entry: Entry): void {
    this.#forgetNumber(branch);
    this.#entries.set(branch, entry);
    this.#branches.set(entry.pull.number, branch);
    if (isBatchBranch(branch)) this.#shared.add(branch);
  }

  #forgetNumber(branch: string): void {
    const number = this.#entries.get(branch)?.pull.number;
    // Users may rename the branch of a pull request, which has the number then.
    if (number !== undefined && this.#branches.get(number) === branch) this.#branches.delete(number);
  }

  /** Puts a copy in the place of a pull request, so that callers who compare look again. Returns its branch. */
  #lookAgain(entry: Entry): string {
    const { branch } = entry.pull.head;
    this.#set(branch, { ...entry, pull: { ...entry.pull } });
    return branch;
  }

  #noteState({ pull, reviews }: PullState): string[] {
    const { branch } = pull.head;
    const known = this.#entries.get(branch)?.pull;
    this.note(pull);
    const entry = this.#entries.get(branch);
    if (entry?.pull.number !== pull.number) return [branch];
    const isSame = entry.pull === known && isDeepStrictEqual(this.#reviews.get(known), reviews);
    // A comment of the same second changes nothing that could be compared.
    if (isSame && pull.hasComments === false) return [];
    // A copy, so that callers who compare look again.
    const now = { ...entry.pull, ...(pull.hasComments === undefined ? {} : { hasComments: pull.hasComments }) };
    this.#set(branch, { ...entry, pull: now, isUnseen: false });
    this.#reviews.set(now, reviews);
    return [branch];
  }

  /** The reviews of a pull request that `ofBranch` returned, where they were read together with it. */
  reviewsOf(pull: PullRequest): readonly Review[] | undefined {
    return this.#reviews.get(pull);
  }

  /** Whether a change can be the effect of an own push. A review at the same time is found by the next poll, which reads it once more. */
  #isOwnPush(known: PullRequest | undefined, pull: PullRequest, now: number): boolean {
    const at = this.#pushes.get(pull.head.branch);
    if (known === undefined || at === undefined || now - at > OWN_PUSH_MS) return false;
    const { head, updatedAt } = pull;
    return isSame({ ...known, head: { ...known.head, commit: head.commit }, updatedAt }, pull);
  }

  /** Takes over what the host returned of a pull request. Returns whether it differs from what was known. */
  note(pull: PullRequest): boolean {
    const now = this.#clock.now();
    const { branch, isSameRepository } = pull.head;
    if (pull.updatedAt > this.#since) this.#since = pull.updatedAt;
    const entry = this.#entries.get(branch);
    const known = entry?.pull;
    if (!isSameRepository) return false;
    if (pull.base.branch !== this.base) {
      // A user has changed what it is merged into: it is none of this branch any more.
      if (known?.number !== pull.number) return false;
      this.forget(branch);
      return true;
    }
    if (known !== undefined && known.number !== pull.number)
      this.#noteEarlier(branch, Math.min(known.number, pull.number));
    if (known === undefined && pull.state !== 'open' && !this.#wanted.has(branch)) return false;
    if (known !== undefined && isLater(known, pull)) return false;
    if (entry !== undefined && known !== undefined && isSame(known, pull)) {
      this.#set(branch, { ...entry, readMs: now });
      return false;
    }
    this.#set(branch, { pull, isFresh: true, sinceMs: now, readMs: now, isUnseen: false });
    return true;
  }

  /** Numbers of former pull requests of a branch: what reviewers requested there still stands. */
  earlierOf(branch: string): readonly number[] {
    return this.#earlier.get(branch) ?? [];
  }

  /** Drops what is kept of a branch, except that it had a pull request: its proposal has ended, or the host has it no more. */
  forget(branch: string): void {
    const known = this.#entries.get(branch)?.pull;
    if (known !== undefined) this.#noteEarlier(branch, known.number);
    this.#wanted.delete(branch);
    this.#forgetNumber(branch);
    this.#entries.delete(branch);
    this.#shared.delete(branch);
  }

  #noteEarlier(branch: string, number: number): void {
    const known = this.earlierOf(branch);
    if (!known.includes(number)) this.#earlier.set(branch, [...known, number].slice(-MAX_EARLIER));
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#loading ??= this.#readAll(signal).catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    await this.#loading;
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    const recent = await this.forge.listUpdated(EPOCH, MAX_RECENT, signal);
    const open = await this.forge.listOpen(this.base, MAX_OPEN, signal);
    for (const { head } of recent) if (isOwnBranch(head.branch)) this.#wanted.add(head.branch);
    for (const pull of [...recent].reverse()) this.note(pull);
    for (const pull of open) this.note(pull);
    this.#wanted.clear();
  }
}

/** True for the branches that Sluice opens pull requests for. */
export function isOwnBranch(branch: string): boolean {
  return branch.startsWith(PROPOSED) || isBatchBranch(branch);
}

/** True if of two pull requests of one branch the first one counts: an open one, else the later one. */
function isLater(known: PullRequest, other: PullRequest): boolean {
  if (known.number === other.number) return false;
  if ((known.state === 'open') !== (other.state === 'open')) return known.state === 'open';
  return known.number > other.number;
}

/**
 * Whether nothing has changed. Lists, single reads and queries of one host differ in what they return besides: whether there are comments, and
 * the names of users that do not exist any more.
 */
function isSame(known: PullRequest, read: PullRequest): boolean {
  const { hasComments = known.hasComments ?? false } = read;
  return hasComments === (known.hasComments ?? false) && isDeepStrictEqual(comparable(known), comparable(read));
}

function comparable({ hasComments: _, author: __, labels, merged, ...pull }: PullRequest) {
  return { ...pull, labels: new Set(labels), merged: merged?.commit };
}
