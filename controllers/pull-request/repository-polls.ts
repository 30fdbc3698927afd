import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import type { ReviewRequest, SyncRequests } from '../repository/sync-requests.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import type { Batches } from './batch/batches.ts';
import { QueuedPulls } from './checks/queued-checks.ts';
import type { HostFailures } from './host-failures.ts';
import type { OpenedRepositories } from './opened-repositories.ts';
import { pauseAfter } from './pause-after.ts';
import type { PollPace } from './poll-pace.ts';
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
  /** Looks at a proposal, before what else waits. */
  wake(revision: ObjectKey): void;
}

/** What messages have reported of pull requests, by their numbers. */
interface News {
  /** To be read with their reviews. */
  readonly numbers: ReadonlySet<number>;
  /** Those that have another review, and are otherwise as known. */
  readonly reviewed: ReadonlySet<number>;
  readonly needsList: boolean;
}

/**
 * Reads which pull requests of repositories have changed: those that messages name as soon as they arrive, and a list now and then, which finds
 * what no message named.
 */
export class RepositoryPolls {
  readonly #context: PollContext;
  readonly #queues = new QueuedPulls();
  /** Why pull requests cannot be read, as their proposals report it. */
  readonly #unreadable = new WeakMap<PullRequests, string>();

  constructor(context: PollContext) {
    this.#context = context;
  }

  async poll(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { clock, shown, opened, pace, requests, batches } = this.#context;
    const id = keyText(key);
    const waitMs = pace.readWaitMs(id);
    if (waitMs > 0) return { requeueAfter: waitMs, reason: 'pull requests were read a moment ago' };
    const here = shown.inRepository(key);
    const all = [...new Set(here.map(({ pull }) => pull.pulls))];
    await opened.closeUnused(key, new Set([...all, ...batches.pullsOf(key)]));
    if (here.length === 0) {
      pace.rest(id);
      return undefined;
    }
    const requested = requests?.takeReview(key, 'proposals');
    this.#requestChecks(key, here, requested);
    const isWoken = requested === undefined && !pace.isReported(id);
    if ((requested?.pulls.size ?? 0) > 0) pace.noteMessage(id);
    // Taken once, it has to outlast a failure of what is read before the queue.
    if (requested?.mergeQueue === true) for (const pulls of all) this.#queues.request(pulls);
    const hasUnseen = () => all.some((pulls) => pulls.hasUnseen);
    const failures: unknown[] = [];
    for (const pulls of all) {
      const own = here.filter(({ pull }) => pull.pulls === pulls);
      const began = clock.now();
      try {
        const news = this.#newsOf(pulls, own, requested);
        const isDue = pace.dueMs(id, hasUnseen()) === 0 || isWoken || news.needsList;
        // Where it has to wait, what was named is read by itself.
        if (isDue && pace.waitMs(id) === 0) {
          const secondLookMs = pace.isReported(id) ? REPORTED_SECOND_LOOK_MS : SECOND_LOOK_MS;
          const { branches, isChanged, failure } = await pulls.poll(signal, secondLookMs);
          this.#wake(key, own, [...branches, ...pulls.lookAgainAt(new Set([...news.numbers, ...news.reviewed]))]);
          if (branches.length > 0) this.#queues.request(pulls);
          await this.#readQueue(key, pulls, own, signal);
          if (failure !== undefined) throw failure;
          pace.notePoll(id, { tookMs: clock.now() - began, isChanged });
          if (this.#unreadable.delete(pulls)) for (const one of own) this.#context.failures.end(one.key);
        } else {
          this.#wake(key, own, pulls.lookAgainAt(news.reviewed));
          const { branches, failure } = await pulls.readStates([...news.numbers], signal);
          this.#wake(key, own, branches);
          if (news.numbers.size > 0) pace.noteRead(id, clock.now() - began);
          await this.#readQueue(key, pulls, own, signal);
          if (failure !== undefined) throw failure;
        }
      } catch (error) {
        // Other hosts are read all the same: what was reported of them is taken.
        failures.push(error);
        if (pauseAfter(error) !== undefined) await this.#reportUnreadable(pulls, own, messageOf(error), signal);
      }
    }
    const [first] = failures;
    if (first === undefined) {
      const requeueAfter = Math.max(pace.dueMs(id, hasUnseen()), pace.waitMs(id));
      return { requeueAfter, reason: 'pull requests are read' };
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
    const [numbers, reviewed] = [new Set<number>(), new Set<number>()];
    let needsList = false;
    if (requested === undefined) return { numbers, reviewed, needsList };
    const { store } = this.#context;
    const { batchesReads } = pulls.forge;
    const pushed = new Map<string, string | undefined>();
    for (const { pull, key } of own) {
      const revision = store.find(keyText(key));
      // What has just been published ends on the host too, which is no news.
      if (revision?.lifecycle !== 'Proposed') continue;
      // The head of a batch is none of its proposals.
      pushed.set(pull.branch, isBatchBranch(pull.branch) ? undefined : revision.commit);
    }
    for (const reported of requested.pulls.values()) {
      const news = pulls.newsOf(reported, pushed);
      // The reconciliation reads the reviews in any case.
      if (news === 'reviews' && !batchesReads) reviewed.add(reported.number);
      else if (news === 'reviews' || news === 'state') numbers.add(reported.number);
      needsList ||= news === 'list';
    }
    if (!batchesReads && numbers.size > MAX_SINGLE_READS) needsList = true;
    return { numbers, reviewed, needsList };
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
