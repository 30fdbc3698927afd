import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { pauseAfter } from '../../src/forge/pause-after.ts';
import type { PollPace } from '../../src/forge/poll-pace.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import type { ReportedPull, ReviewRequest, SyncRequests } from '../repository/sync-requests.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import type { Batches } from './batch/batches.ts';
import { QueuedPulls } from './checks/queued-checks.ts';
import type { EndedProposals } from './ending/ended-proposals.ts';
import type { HostFailures } from './host-failures.ts';
import type { OpenedRepositories } from './opened-repositories.ts';
import type { PullRequests } from './pull-requests.ts';
import type { Shown, ShownProposals } from './shown-proposals.ts';
import { hasChecksAt } from './writing/write-pull.ts';

/** Proposals of one repository that report the same failure. */
const MAX_REPORTED = 100;
/** More named pull requests than that are read as a list, where each takes requests of its own. */
const MAX_SINGLE_READS = 4;
/** What may have changed twice in a second is read once more after that; after the longer time where a message reports the other change too. */
const SECOND_LOOK_MS = 1000;
const REPORTED_SECOND_LOOK_MS = 60_000;
/** A host reports a push of Sluice up to so long before it has returned. */
const PUSH_MS = 3000;

export interface PollContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find'>;
  readonly clock: Clock;
  readonly shown: ShownProposals;
  readonly opened: OpenedRepositories;
  readonly pace: PollPace;
  readonly failures: HostFailures;
  readonly requests: Pick<SyncRequests, 'takeReview'> | undefined;
  readonly batches: Pick<Batches, 'pullsOf' | 'wake'>;
  readonly ended: Pick<EndedProposals, 'pullsOf' | 'update'>;
  /** Looks at a proposal, before what else waits. */
  wake(revision: ObjectKey): void;
}

/** What messages have reported of pull requests, by their numbers, and what was not read since. */
interface News {
  /** To be read with their reviews. */
  readonly numbers: Set<number>;
  /** Those that have another review, and are otherwise as known. */
  readonly reviewed: Set<number>;
  /** A branch has another one, which only a list has. */
  needsList: boolean;
}

/**
 * Reads which pull requests of repositories have changed: those that messages name as soon as they arrive, and a list now and then, which finds
 * what no message named.
 */
export class RepositoryPolls {
  readonly #context: PollContext;
  readonly #queues = new QueuedPulls();
  /** Taken once, it has to outlast a failure, and the pause after a list. */
  readonly #unread = new WeakMap<PullRequests, News>();
  /** Messages about heads that may be those of pushes of Sluice, by number, and until when they wait, in milliseconds of running time. */
  readonly #heads = new WeakMap<
    PullRequests,
    Map<number, { readonly reported: ReportedPull; readonly untilMs: number }>
  >();
  /** Why pull requests cannot be read, as their proposals report it. */
  readonly #unreadable = new WeakMap<PullRequests, string>();

  constructor(context: PollContext) {
    this.#context = context;
  }

  async poll(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { clock, shown, opened, pace, requests, batches, ended } = this.#context;
    const id = keyText(key);
    const waitMs = pace.readWaitMs(id);
    if (waitMs > 0) return { requeueAfter: waitMs, reason: 'pull requests were read a moment ago' };
    const here = shown.inRepository(key);
    // Of a pull request that was closed, no proposal is left, but it can be opened again.
    const left = [...batches.pullsOf(key), ...(await ended.pullsOf(key))];
    const all = [...new Set([...here.map(({ pull }) => pull.pulls), ...left])];
    await opened.closeUnused(key, new Set(all));
    if (all.length === 0) {
      pace.rest(id);
      return undefined;
    }
    const requested = requests?.takeReview(key, 'proposals');
    this.#requestChecks(key, here, requested);
    const isWoken = requested === undefined && !pace.isReported(id);
    if ((requested?.pulls.size ?? 0) > 0) pace.noteMessage(id);
    // Taken once, it has to outlast a failure of what is read before the queue.
    if (requested?.mergeQueue === true) for (const pulls of all) this.#queues.request(pulls);
    const failures: unknown[] = [];
    for (const pulls of all) {
      const own = here.filter(({ pull }) => pull.pulls === pulls);
      const began = clock.monotonic();
      try {
        const news = this.#newsOf(pulls, own, requested);
        const dueMs = pace.dueMs(id, pulls, pulls.hasUnseen);
        const isMany = !pulls.forge.batchesReads && news.numbers.size > MAX_SINGLE_READS;
        const isNow = (isWoken && dueMs > 0) || news.needsList || isMany;
        const isDue = dueMs === 0 || isNow;
        // Where it has to wait, what was named is read by itself.
        if (isDue && pace.waitMs(pulls) === 0) {
          const secondLookMs = pace.isReported(id) ? REPORTED_SECOND_LOOK_MS : SECOND_LOOK_MS;
          const maxAgeMs = isNow ? 0 : pace.nextMs(id, pulls.hasUnseen) / 2;
          const { branches, isChanged, readMs, failure } = await pulls.poll(signal, { secondLookMs, maxAgeMs });
          this.#unread.delete(pulls);
          this.#wake(key, own, [...branches, ...pulls.lookAgainAt(new Set([...news.numbers, ...news.reviewed]))]);
          if (branches.length > 0) this.#queues.request(pulls);
          await this.#readQueue(key, pulls, own, signal);
          if (failure !== undefined) throw failure;
          pace.notePoll(id, pulls, { tookMs: clock.monotonic() - began, isChanged, readMs });
          await ended.update(key, pulls, signal);
          if (this.#unreadable.delete(pulls)) for (const one of own) this.#context.failures.end(one.key);
        } else {
          this.#wake(key, own, pulls.lookAgainAt(news.reviewed));
          const { branches, failure } = await pulls.readStates([...news.numbers], signal);
          this.#wake(key, own, branches);
          if (news.numbers.size > 0) pace.noteRead(id, clock.monotonic() - began);
          // The reconciliations of those that could not be read do it again.
          for (const handled of [news.numbers, news.reviewed]) handled.clear();
          await this.#readQueue(key, pulls, own, signal);
          if (failure !== undefined) throw failure;
          await ended.update(key, pulls, signal);
        }
      } catch (error) {
        // Other hosts are read all the same: what was reported of them is taken.
        failures.push(error);
        if (pauseAfter(error) !== undefined) await this.#reportUnreadable(pulls, own, messageOf(error), signal);
      }
    }
    const [first] = failures;
    if (first === undefined) {
      const heads = all.flatMap((pulls) => [...(this.#heads.get(pulls)?.values() ?? [])]);
      const headsMs = Math.min(...heads.map(({ untilMs }) => Math.max(0, untilMs - clock.monotonic())));
      const dueMs = (pulls: PullRequests) =>
        this.#unread.get(pulls)?.needsList === true ? 0 : pace.dueMs(id, pulls, pulls.hasUnseen);
      const listsMs = all.map((pulls) => Math.max(dueMs(pulls), pace.waitMs(pulls)));
      return { requeueAfter: Math.min(headsMs, ...listsMs), reason: 'pull requests are read' };
    }
    const pauses = failures.map((error) => {
      const pause = pauseAfter(error);
      if (pause === undefined) throw error;
      return pause;
    });
    return { requeueAfter: Math.min(...pauses), reason: messageOf(first) };
  }

  /** Users have requested the checks of commits again. */
  #requestChecks(repository: ObjectKey, here: readonly Shown[], requested: ReviewRequest | undefined): void {
    for (const pull of new Set(here.map(({ pull: of }) => of))) {
      if (![...(requested?.reruns ?? [])].some((commit) => hasChecksAt(pull, commit))) continue;
      delete pull.checks;
      this.#wake(repository, here, [pull.branch]);
    }
  }

  #newsOf(pulls: PullRequests, own: readonly Shown[], requested: ReviewRequest | undefined): News {
    const unread = this.#unread.get(pulls) ?? { numbers: new Set(), reviewed: new Set(), needsList: false };
    this.#unread.set(pulls, unread);
    const { numbers, reviewed } = unread;
    const waiting = this.#heads.get(pulls);
    this.#heads.delete(pulls);
    if (requested === undefined && waiting === undefined) return unread;
    const { store, clock } = this.#context;
    const { batchesReads } = pulls.forge;
    const pushed = new Map<string, string | undefined>();
    for (const { pull, key } of own) {
      const revision = store.find(keyText(key));
      // What has just been published ends on the host too, which is no news.
      if (revision?.lifecycle !== 'Proposed') continue;
      // The head of a batch is none of its proposals.
      pushed.set(pull.branch, isBatchBranch(pull.branch) ? undefined : revision.commit);
    }
    const before = [...(waiting?.values() ?? [])].map(({ reported }) => reported);
    for (const reported of [...before, ...(requested?.pulls.values() ?? [])]) {
      const { number } = reported;
      const news = pulls.newsOf(reported, pushed);
      const untilMs = waiting?.get(number)?.untilMs ?? clock.monotonic() + PUSH_MS;
      // The reconciliation reads the reviews in any case.
      if (news === 'reviews' && !batchesReads) reviewed.add(number);
      else if (news === 'head' && clock.monotonic() < untilMs) {
        const heads = this.#heads.get(pulls) ?? new Map();
        this.#heads.set(pulls, heads.set(number, { reported, untilMs }));
      } else if (news === 'reviews' || news === 'state' || news === 'head') numbers.add(number);
      unread.needsList ||= news === 'list';
    }
    return unread;
  }

  #wake(repository: ObjectKey, own: readonly Shown[], branches: readonly string[]): void {
    const changed = new Set(branches);
    for (const { key, pull } of own) if (changed.has(pull.branch)) this.#context.wake(key);
    if (branches.some(isBatchBranch)) this.#context.batches.wake(repository);
  }

  async #readQueue(repository: ObjectKey, pulls: PullRequests, own: readonly Shown[], signal: AbortSignal) {
    const queued = await this.#queues.read(pulls, new Set(own.map(({ pull }) => pull)), signal);
    this.#wake(
      repository,
      own,
      queued.map(({ branch }) => branch),
    );
  }

  /** The proposals wait for an operator, which each of them shows; once, however often it is tried again. */
  async #reportUnreadable(pulls: PullRequests, own: readonly Shown[], message: string, signal: AbortSignal) {
    const { client, failures } = this.#context;
    if (this.#unreadable.get(pulls) === message) return;
    for (const { key } of own.slice(0, MAX_REPORTED)) {
      const object = await client.find(packageRevisionKind, key, { signal });
      if (object !== undefined) failures.report(object, message);
    }
    this.#unreadable.set(pulls, message);
  }
}
