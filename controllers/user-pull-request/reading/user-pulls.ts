import { isDeepStrictEqual } from 'node:util';
import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { QueuedMerge } from '../../../src/forge/merge-queue.ts';
import { CLOCKS_MS } from '../../../src/forge/next-since.ts';
import type { ListReader } from '../../../src/forge/shared-lists.ts';
import { inSlices } from '../../../src/foundation/concurrency/in-slices.ts';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import { type Clock, timestamp } from '../../../src/foundation/time/clock.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { AwaitedMerge } from '../../pull-request/merged/awaited-merge.ts';
import type { OwnBranches } from '../../pull-request/own-branch.ts';
import { ChangedPulls } from '../../pull-request/reading/changed-pulls.ts';
import { type RulesAtMerge, rulesAtMerge } from '../judging/rules-at-merge.ts';
import { MergeComments } from '../merges/merge-comments.ts';
import { isPassedOver } from '../merges/merge-failures.ts';
import { isLongAgo, isMergedSince, lastMergeMs, type MergedUserPull } from '../merges/merged-user-pull.ts';
import { type CheckedPackages, movedOnMain } from './moved-on-main.ts';
import { ProposalPulls } from './proposal-pulls.ts';
import { forgetWritten, type Written } from './written.ts';

/** Open pull requests that are followed; those that changed last. */
export const MAX_OPEN = 2000;
/** Those that changed last, in any state, that are read at the start: what was merged while no process ran. */
const MAX_RECENT = 500;
/** Where more changed since the last merge that was published, later polls read up to so many. */
const MAX_MISSED = 8000;
/** Merged pull requests whose publication is remembered. */
const MAX_SETTLED = 500;

export interface PollOptions {
  readonly repository: PackageRepository;
  /** The one with such an id; undefined if it is not open. */
  findRepository(id: string): PackageRepository | undefined;
  /** The text of the policies: all are looked at again when it changes. */
  readonly policies: string;
  readonly mergedSince: string | undefined;
  /**
   * A list that was read so long ago suffices, in milliseconds; undefined where the host has nothing new, as far as is known: then none
   * is read.
   */
  readonly maxAgeMs: number | undefined;
}

export interface HeadedPull {
  readonly number: number;
  /** False for one from a fork. */
  readonly isSameRepository: boolean;
}

interface Listed {
  readonly pull: PullRequest;
  /** Listed by the first call of `poll`, or as one that was merged before. */
  readonly isFirst: boolean;
}

interface Entry {
  updatedAt: string;
  /** As it was listed. */
  head: Pick<PullRequest['head'], 'commit' | 'isSameRepository'>;
  checked?: CheckedPackages;
  /** The commits of the merge queue of the host that would merge it. */
  queued?: readonly QueuedMerge[];
  readonly written: Written;
}

/**
 * The open pull requests of users to one branch, and the merged ones of which the packages are not published yet. What is here decides only what to
 * look at: state is read from the host again before every effect.
 */
export class UserPulls {
  readonly forge: Forge;
  readonly proposals: ProposalPulls;
  readonly #lists: ListReader;
  readonly #base: string;
  readonly #changes: ChangedPulls;
  /** What was listed and is not taken over yet, and the numbers of the open ones that have changed: both outlast a failure. */
  readonly #listed = new Map<number, Listed>();
  readonly #changed = new Set<number>();
  readonly #open = new Map<number, Entry>();
  readonly #merged = new Map<number, MergedUserPull>();
  /** When those changed last whose packages are published. */
  readonly #settled = new LruCache<number, string>({ maxEntries: MAX_SETTLED });
  /** The last checks of merged ones. */
  readonly #checked = new LruCache<number, Pick<CheckedPackages, 'head' | 'mainHead'>>({ maxEntries: MAX_SETTLED });
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  #hasBegun = false;
  #policies: string | undefined;
  /** The merge queue is to be read; at first, since it may wait. */
  #readsQueue = true;
  /** What is still to be read of what changed while no process ran; undefined if nothing is. */
  #missed: { readonly since: string; readonly limit: number } | undefined;
  readonly comments = new MergeComments();
  /** Those that have waited too long to hold up others. */
  overdue?: AwaitedMerge;
  /** Merged ones of which the host was searched for what an earlier process reported. */
  searched = 0;
  /** Whether the last call of `poll` has found changes since the one before. */
  hasChanged = false;
  /** When the host was read that the last call of `poll` has read, in milliseconds of running time; undefined for just then. */
  readMs: number | undefined;
  /** When a rule for a merge may begin or end to block by itself, milliseconds since the epoch; undefined if none does. */
  rulesChangeAt: number | undefined;

  /** `lists` is closed with it. */
  constructor(
    forge: Forge,
    { base, isOwn }: { readonly base: string; readonly isOwn: OwnBranches },
    lists: ListReader,
    clock: Pick<Clock, 'monotonic' | 'now'>,
  ) {
    this.forge = forge;
    this.#clock = clock;
    this.#base = base;
    this.proposals = new ProposalPulls({ base, isOwn }, clock);
    this.#lists = lists;
    this.#changes = new ChangedPulls(forge, { base, maxOpen: MAX_OPEN }, lists, clock);
  }

  async close(): Promise<void> {
    this.#lists.close();
    await this.forge.close();
  }

  has(number: number): boolean {
    return this.#open.has(number);
  }

  /** Whether the first list was read and taken over. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Those with this head. */
  withHead(commit: string): readonly HeadedPull[] {
    return [...this.#open].flatMap(([number, { head }]) =>
      head.commit === commit ? { number, isSameRepository: head.isSameRepository } : [],
    );
  }

  /** Whether merges from before the start are still to be read: until then none is published, since the first ones get the lower numbers. */
  get isReadingMissed(): boolean {
    return this.#missed !== undefined;
  }

  /** Those whose packages wait to be published, in the order of their merges. */
  merged(): readonly MergedUserPull[] {
    const time = ({ pull }: MergedUserPull) => Date.parse(pull.closedAt ?? pull.updatedAt);
    return [...this.#merged.values()].sort((a, b) => time(a) - time(b) || a.pull.number - b.pull.number);
  }

  /** The packages of a merged pull request are published, or never will be. */
  settle({ number, updatedAt }: PullRequest): void {
    this.#merged.delete(number);
    this.#settled.set(number, updatedAt);
  }

  /** Whether there is something to publish or to report of merged ones. */
  get hasMergeWork(): boolean {
    return this.#merged.size > 0 || this.comments.isWaiting || this.proposals.unreported().length > 0;
  }

  /** Whether one of them holds up later ones, since attempts to publish it fail. */
  get isHeldUp(): boolean {
    return [...this.#merged.values()].some((one) => one.failing?.lastMs !== undefined && !isPassedOver(one));
  }

  /** A merged one of a proposal has become one of a user. */
  takeMerged(pull: PullRequest): void {
    this.#merged.set(pull.number, { pull, isMissed: false, attempts: 0 });
  }

  /** See `ProposalPulls`. */
  isOfUser(pull: PullRequest, signal?: AbortSignal): Promise<boolean> {
    return this.proposals.isOfUser(pull, signal);
  }

  /**
   * Reads what changed since the last call. Returns the numbers of the pull requests to look at, and the first failure, if there is any: what could
   * not be taken over is tried again by the next call, as is what was read before a rejection. The first call also reads what was merged since
   * `mergedSince` (RFC 3339) while no process ran, and later calls the rest of it, if that is much; undefined if merges publish nothing.
   */
  async poll(
    { repository, findRepository, policies, mergedSince, maxAgeMs }: PollOptions,
    signal: AbortSignal,
  ): Promise<{ readonly changed: readonly number[]; readonly failure?: unknown }> {
    const isFirst = !this.#changes.hasBegun;
    if (this.#listed.size === 0 && this.#changed.size === 0) this.hasChanged = false;
    this.readMs = undefined;
    this.#look(await movedOnMain(repository, this.#open));
    this.#look(await this.#withOtherRules(findRepository));
    if (this.#policies !== policies) this.#look(this.#open.keys());
    this.#list(isFirst ? await this.#begin(repository, mergedSince, signal) : await this.#readMissed(signal), true);
    this.#list(await this.proposals.ofUsers(), isFirst);
    if (!isFirst && maxAgeMs !== undefined) {
      const again = [...this.#changes.fresh];
      const { pulls, readMs } = await this.#changes.read({ maxAgeMs, open: this.#open.keys() }, signal);
      this.readMs = readMs;
      this.#look(again);
      this.#list(pulls, false);
    }
    this.#policies = policies;
    const failures: unknown[] = [];
    for (const listed of [...this.#listed.values()])
      try {
        await this.#takeOver(listed, mergedSince);
        this.#listed.delete(listed.pull.number);
      } catch (failure) {
        failures.push(failure);
      }
    if (failures.length === 0) this.#hasBegun = true;
    const changed = [...this.#changed];
    this.#changed.clear();
    return { changed, ...(failures.length === 0 ? {} : { failure: failures[0] }) };
  }

  #look(numbers: Iterable<number>): void {
    for (const number of numbers) this.#changed.add(number);
  }

  #list(pulls: readonly PullRequest[], isFirst: boolean): void {
    for (const pull of pulls) {
      const known = this.#listed.get(pull.number);
      if (known?.pull.updatedAt !== pull.updatedAt) this.#listed.set(pull.number, { pull, isFirst });
    }
  }

  async #begin(
    repository: PackageRepository,
    mergedSince: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly PullRequest[]> {
    // One shows when the last change was. The time of the policy is none of the host.
    const wanted =
      mergedSince === undefined
        ? { maxRecent: 1 }
        : {
            from: timestamp(Math.min(Date.parse(mergedSince), this.#clock.now()) - CLOCKS_MS),
            maxRecent: MAX_RECENT,
          };
    const { recent, open } = await this.#changes.begin(wanted, signal);
    const last = recent[MAX_RECENT - 1];
    if (wanted.from !== undefined && last !== undefined) {
      // Merges are published in their order, so that an earlier process has read all before the last one that it published.
      const publishedMs = lastMergeMs(repository) - CLOCKS_MS;
      const since = publishedMs > Date.parse(wanted.from) ? timestamp(publishedMs) : wanted.from;
      if (Date.parse(last.updatedAt) >= Date.parse(since)) this.#missed = { since, limit: 2 * MAX_RECENT };
    }
    return [...recent.filter(({ state }) => state !== 'open'), ...open];
  }

  /** Reads on, twice as far as before. What changes meanwhile is at the beginning of the list, so that none is passed over. */
  async #readMissed(signal: AbortSignal): Promise<readonly PullRequest[]> {
    if (this.#missed === undefined) return [];
    const { since, limit } = this.#missed;
    const read = await this.forge.listUpdated(since, limit, signal);
    this.#missed = read.length < limit || limit >= MAX_MISSED ? undefined : { since, limit: 2 * limit };
    return read.filter(({ state }) => state !== 'open');
  }

  /** Takes over one as it was listed. */
  async #takeOver({ pull, isFirst }: Listed, mergedSince: string | undefined): Promise<void> {
    const { number, updatedAt } = pull;
    if (await this.#isToPublish(pull, mergedSince)) {
      const waiting = this.#merged.get(number);
      if (waiting !== undefined) waiting.pull = pull;
      else {
        const checkedOnto = this.#checkedOnto(pull);
        this.#merged.set(number, { pull, isMissed: isFirst || isLongAgo(pull), attempts: 0, checkedOnto });
      }
    } else if (isMergedSince(pull, mergedSince)) await this.proposals.noteMerged(pull);
    const known = this.#open.get(number);
    if (known?.updatedAt === updatedAt) return;
    if (known === undefined && (pull.state !== 'open' || !(await this.isOfUser(pull)))) {
      this.proposals.note(pull);
      return;
    }
    this.#changed.add(number);
    this.hasChanged ||= !isFirst;
    this.proposals.forget(number);
    this.#open.set(number, { written: {}, ...known, updatedAt, head: pull.head });
    this.#changes.note(pull);
  }

  /** Where the main branch was when the head of a merged one was checked last. */
  #checkedOnto({ number, head }: PullRequest): Oid | undefined {
    const checked = this.#open.get(number)?.checked ?? this.#checked.get(number);
    if (checked?.head !== head.commit) return undefined;
    // A comment about the merge has it looked at once more.
    const { mainHead } = checked;
    this.#checked.set(number, { head: head.commit, mainHead });
    return mainHead;
  }

  async #isToPublish(pull: PullRequest, mergedSince: string | undefined): Promise<boolean> {
    if (!isMergedSince(pull, mergedSince)) return false;
    return (await this.isOfUser(pull)) && this.#settled.get(pull.number) !== pull.updatedAt;
  }

  /** Those for whose packages other rules, or other revisions, block a merge than their checks show: no event of the host reports that. */
  async #withOtherRules(findRepository: PollOptions['findRepository']): Promise<readonly number[]> {
    const now = this.#clock.now();
    const changed: number[] = [];
    this.rulesChangeAt = undefined;
    await inSlices([...this.#open], ([number, { checked }]) => {
      const shown = checked?.rules ?? [];
      const present = shown.map((one) => {
        const { namespace, key } = one.subject;
        const repository = findRepository(`${namespace}/${key.repository}`);
        return repository === undefined ? one : rulesAtMerge(repository, one.subject, now);
      });
      this.#noteRuleChange(present);
      const isOther = ({ rules, problem }: RulesAtMerge, at: number) =>
        problem !== shown[at]?.problem || !isDeepStrictEqual(rules, shown[at]?.rules);
      if (present.some(isOther)) changed.push(number);
    });
    return changed;
  }

  /** Returns whether one of them is the next to change. */
  #noteRuleChange(rules: readonly RulesAtMerge[]): boolean {
    const before = this.rulesChangeAt ?? Number.POSITIVE_INFINITY;
    const next = Math.min(before, ...rules.flatMap(({ changesAt }) => changesAt ?? []));
    if (next === before) return false;
    this.rulesChangeAt = next;
    return true;
  }

  /** The next `readQueue` reads the queue, and if that fails, the one after it. */
  requestQueue(): void {
    this.#readsQueue = true;
  }

  /**
   * Takes over which of them wait for checks in the merge queue of the host. Returns the numbers of those that wait at other commits than before. Reads
   * the queue only if there was something in it, on request, and if a pull request has changed, as those do that are put there: the host may make the
   * commit only later.
   */
  async readQueue(signal: AbortSignal): Promise<readonly number[]> {
    const { mergeQueue } = this.forge;
    const isRead = this.#readsQueue || this.hasChanged || [...this.#open.values()].some(({ queued }) => queued?.length);
    if (mergeQueue === undefined || this.#open.size === 0 || !isRead) return [];
    this.#readsQueue = true;
    const { merges, isComplete } = await mergeQueue.waiting(this.#base, signal);
    this.#readsQueue = !isComplete;
    const changed: number[] = [];
    for (const [number, entry] of this.#open) {
      const queued = merges.filter((one) => one.number === number);
      const isSame = isDeepStrictEqual(queued, entry.queued ?? []);
      entry.queued = queued;
      if (!isSame && queued.length > 0) changed.push(number);
    }
    return changed;
  }

  /** The commits of the merge queue that would merge it. */
  queuedOf(number: number): readonly QueuedMerge[] {
    return this.#open.get(number)?.queued ?? [];
  }

  /** Returns whether its rules change before `rulesChangeAt` as it was. */
  note(number: number, checked: CheckedPackages): boolean {
    const entry = this.#open.get(number);
    if (entry === undefined) return false;
    entry.checked = checked;
    return this.#noteRuleChange(checked.rules);
  }

  writtenOf(number: number): Written {
    return this.#open.get(number)?.written ?? {};
  }

  /** Makes the next check of those with one of these heads write everything again. Returns their numbers. */
  rerun(heads: ReadonlySet<string>): readonly number[] {
    const numbers: number[] = [];
    for (const [number, { checked, written }] of this.#open) {
      if (checked === undefined || !heads.has(checked.head)) continue;
      forgetWritten(written);
      numbers.push(number);
    }
    return numbers;
  }

  /** It has ended, or is none of a user. */
  leave(pull: PullRequest): void {
    this.#open.delete(pull.number);
    this.proposals.note(pull);
  }

  /** It was deleted on the host. Returns its head as it was listed. */
  drop(number: number): string | undefined {
    const { commit } = this.#open.get(number)?.head ?? {};
    this.#open.delete(number);
    this.proposals.forget(number);
    return commit;
  }
}
