import { isDeepStrictEqual } from 'node:util';
import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { pauseAfter } from '../../../src/forge/pause-after.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { HostFailures } from '../host-failures.ts';
import type { OpenedRepositories } from '../opened-repositories.ts';
import type { PullRequests } from '../pull-requests.ts';
import { isDeletedOnHost } from '../reading/deleted-pulls.ts';
import { repositoryOf, type ShownProposals } from '../shown-proposals.ts';
import { proposalId, sectionOf } from '../text/section.ts';
import { type BatchMember, shownOf } from './batch-member.ts';
import { batchBranch, batchesKey, batchPrefix, repositoryOfBatches } from './batch-name.ts';
import { hasDeleted, ofBatch } from './batch-pulls.ts';
import { isBatchEnd } from './describe-batch.ts';
import { leftMembers, removeLeftBranches } from './left-batches.ts';
import { listProposals, proposalsOf } from './listed-proposals.ts';
import { type Batch, planBatches } from './plan-batches.ts';
import { mayReopen, reopenBatch } from './reopen-batch.ts';
import { finishBatch, type ReleasedMember, releaseBatch, writeBatch } from './write-batch.ts';

export interface BatchesOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly failures: HostFailures;
  readonly shown: ShownProposals;
  readonly opened: OpenedRepositories;
  readonly clock: Clock;
  enqueue(key: ObjectKey): void;
}

/** The batches of one repository, of the proposals that are known so far. */
interface Known {
  /** By key as text. */
  readonly members: Map<string, BatchMember>;
  /** Proposals with a pull request of their own. */
  readonly apart: Set<string>;
  /** Where there may be batches: several if policies name several hosts, or one with several credentials. */
  readonly hosts: Map<PullRequests, KnownHost>;
  /** Branches that this process has written. */
  readonly written: Set<string>;
  /** When they may be written next, in milliseconds of running time. */
  notBeforeMs: number;
}

/** What is known of the batches that are read through one object. */
interface KnownHost {
  /** One that was reviewed there. */
  last: PackageRevision;
  /** Proposals that are listed and not reported yet, since when, in milliseconds of running time. */
  readonly unreadSinceMs: Map<string, number>;
  /** Proposals that are listed and were not in the repository when it was read for them. */
  readonly gone: Set<string>;
}

/** Many proposals change at once: their pull requests are written together. */
const PAUSE_MS = 2000;
/** Batches wait at most so long for a member that cannot be read. */
const MAX_UNREAD_MS = 60_000;
const UNREAD_RETRY_MS = 1000;
/** Until a pull request that a user closed is looked at again, which can be opened again as long as its packages stay as they are. */
const REOPEN_CHECK_MS = 600_000;
/**
 * The pull requests that several proposals share. Each proposal is reconciled by itself, reports here what its pull request shows of it, and
 * takes over what is decided there; this class has the branch, the text and the checks of the whole.
 */
export class Batches {
  readonly #options: BatchesOptions;
  /** By repository. */
  readonly #known = new Map<string, Known>();
  /** Keys of members whose pull request could not be written. */
  readonly #failed = new Set<string>();

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Hosts that the batches of a repository use. */
  pullsOf(repository: ObjectKey): Iterable<PullRequests> {
    return this.#known.get(keyText(repository))?.hosts.keys() ?? [];
  }

  /** The pull request that a proposal is in, the open one first; undefined if there is none. */
  async pullOf(pulls: PullRequests, proposed: PackageRepository, proposal: string, signal: AbortSignal) {
    const found: PullRequest[] = [];
    for (const pull of await pulls.sharedWith(batchPrefix(proposed.id), signal))
      if ((await proposalsOf(pull, proposed)).includes(proposal)) found.push(pull);
    return found.find(({ state }) => state === 'open') ?? found.at(-1);
  }

  /** Takes over what a proposal shows. */
  report(member: Omit<BatchMember, 'seenMs'>, pulls: PullRequests): void {
    const repository = repositoryOf(member.key);
    const known = this.#knownOf(repository);
    noteHost(known, pulls, member.revision);
    known.apart.delete(member.proposal);
    const before = known.members.get(keyText(member.key));
    const isSame = before?.proposal === member.proposal;
    const now = { ...member, seenMs: isSame ? before.seenMs : this.#options.clock.monotonic() };
    known.members.set(keyText(member.key), now);
    if (!isDeepStrictEqual(shownOf(before), shownOf(now))) this.wake(repository);
  }

  /** A proposal has ended, or has a pull request of its own, which is stated by `proposal`. */
  withdraw(key: ObjectKey, proposal?: string): void {
    const repository = repositoryOf(key);
    const known = this.#known.get(keyText(repository));
    this.#failed.delete(keyText(key));
    if (known === undefined) return;
    let isChanged = known.members.delete(keyText(key));
    if (proposal !== undefined && !known.apart.has(proposal)) {
      known.apart.add(proposal);
      // Until the shared one is written, both list it.
      known.notBeforeMs = Number.NEGATIVE_INFINITY;
      isChanged = true;
    }
    if (isChanged) this.wake(repository);
  }

  /** Whether the pull request of a proposal could not be written. */
  hasFailed(key: ObjectKey): boolean {
    return this.#failed.has(keyText(key));
  }

  wake(repository: ObjectKey): void {
    if (this.#known.has(keyText(repository))) this.#options.enqueue(batchesKey(repository));
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { clock } = this.#options;
    const repository = repositoryOfBatches(key);
    const known = this.#known.get(keyText(repository)) ?? (await this.#find(repository));
    if (known === undefined) return undefined;
    const pauseMs = known.notBeforeMs - clock.monotonic();
    if (pauseMs > 0) return { requeueAfter: pauseMs, reason: 'pull requests were written a moment ago' };
    const outdated = [...known.hosts].filter(([pulls, { last }]) => this.#isOutdated(pulls, last));
    for (const [pulls] of outdated) known.hosts.delete(pulls);
    if (outdated.length > 0) await this.#find(repository);
    const waits: number[] = [];
    const seen = new Set<string>();
    const failures: unknown[] = [];
    for (const [pulls, host] of known.hosts)
      try {
        waits.push(...(await this.#reconcileOn(known, pulls, host, seen, signal)));
      } catch (error) {
        // A Secret that the host refuses must not hold up the others.
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
    if (waits.length === 0) return undefined;
    return { requeueAfter: Math.min(...waits), reason: 'further proposals may follow' };
  }

  /** What earlier processes left, of which no proposal may be left to report it. */
  async #find(repository: ObjectKey): Promise<Known | undefined> {
    const { store, opened, enqueue } = this.#options;
    const left = await leftMembers(store, repository);
    if (left === undefined) return undefined;
    for (const { revision, review } of left) noteHost(this.#knownOf(repository), opened.of(revision, review), revision);
    // No proposal may be left that has its pull requests polled.
    enqueue(repository);
    return this.#known.get(keyText(repository));
  }

  /** No policy names this object any more, while policies name others: what is left there is read with other credentials, or not at all. */
  #isOutdated(pulls: PullRequests, last: PackageRevision): boolean {
    const { store } = this.#options;
    const repository = store.repositoryOf(last);
    if (this.#pullsOf(repository, last) === pulls) return false;
    let hasOthers = false;
    for (const revision of store.list({ repository: repository.id })) {
      const named = this.#pullsOf(repository, revision);
      if (named === pulls) return false;
      hasOthers ||= named !== undefined;
    }
    return hasOthers;
  }

  /** Through what the proposal of a revision is reviewed by its policy; undefined if that is not open, or no one policy has it reviewed. */
  #pullsOf(repository: PackageRepository, revision: PackageRevision): PullRequests | undefined {
    const { review } = repository.policyFor(revision);
    return review && this.#options.opened.find(revision, review);
  }

  #knownOf(repository: ObjectKey): Known {
    const known = this.#known.get(keyText(repository)) ?? {
      ...{ members: new Map(), apart: new Set<string>(), hosts: new Map() },
      ...{ written: new Set<string>(), notBeforeMs: 0 },
    };
    this.#known.set(keyText(repository), known);
    return known;
  }

  /**
   * Brings the shared pull requests up to date that are reviewed through one object. `seen` has the addresses of those that others had in this round.
   * Returns after how many milliseconds to reconcile again.
   */
  async #reconcileOn(
    known: Known,
    pulls: PullRequests,
    host: KnownHost,
    seen: Set<string>,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { store, clock, enqueue } = this.#options;
    const repository = store.repositoryOf(host.last);
    for (const pull of await pulls.sharedWith(batchPrefix(repository.id), signal))
      if (pull.state === 'open') await reopenBatch({ ...this.#options, signal }, pulls, repository, pull);
    const shared = await pulls.sharedWith(batchPrefix(repository.id), signal);
    const live = await this.#readLive(host, repository, shared, signal);
    for (const one of known.apart) if (!live.has(one)) known.apart.delete(one);
    // One that has just been published is not withdrawn yet.
    const reported = [...known.members.values()].filter(({ proposal }) => live.has(proposal));
    const left = new Map(reported.map((one) => [one.proposal, one.left]));
    const reviewedThrough = (proposal: string) => {
      const revision = store.find(keyText(live.get(proposal) ?? { name: '' }));
      return revision && this.#pullsOf(repository, revision);
    };
    const members = reported.filter(({ proposal }) => reviewedThrough(proposal) === pulls);
    const read = new Set(members.map(({ proposal }) => proposal));
    const { own, listed, elsewhere } = await listProposals(repository, shared, {
      ...{ pulls, reviewedThrough, seen },
      isThere: (one, number) => live.has(one) && !known.apart.has(one) && left.get(one)?.includes(number) !== true,
    });
    const open = own.filter(({ state }) => state === 'open');
    const unreported = open.flatMap(({ head }) => listed.get(head.branch) ?? []).filter((one) => !read.has(one));
    // What looks released by an old policy would lose its text.
    if (unreported.length > 0) await repository.refreshPolicies();
    const released = new Map(unreported.flatMap((one) => this.#releasedAs(repository, one, live.get(one))));
    const unread = unreported.filter((one) => !released.has(one));
    const { unreadSinceMs } = host;
    for (const one of unreadSinceMs.keys()) if (!unread.includes(one)) unreadSinceMs.delete(one);
    for (const one of unread) unreadSinceMs.set(one, unreadSinceMs.get(one) ?? clock.monotonic());
    if (unread.some((one) => clock.monotonic() - (unreadSinceMs.get(one) ?? 0) < MAX_UNREAD_MS)) {
      for (const one of unread) enqueue(live.get(one) ?? { name: '' });
      return [UNREAD_RETRY_MS];
    }
    const { batches, waitMs } = planBatches(
      // Those of one that has ended are published, rejected or released by themselves.
      members.filter(({ proposal }) => !elsewhere.has(proposal)),
      open.map(({ head: { branch } }) => ({ branch, proposals: listed.get(branch) ?? [] })),
      (founder) => batchBranch(repository.id, founder),
      clock.monotonic(),
    );
    const waits = waitMs === undefined ? [] : [waitMs];
    for (const batch of batches)
      if (batch.members.length > 0) waits.push(...(await this.#show(known, pulls, repository, batch, signal)));
    const unused = own.filter(({ head: { branch } }) => {
      const isUsed = batches.some((one) => one.branch === branch && one.members.length > 0);
      return !isUsed && (listed.get(branch) ?? []).length === 0;
    });
    for (const pull of unused) {
      // A user has opened it again: it is left to be checked as one of a user.
      if (pull.state === 'open' && isBatchEnd(sectionOf(pull.body) ?? '')) continue;
      const belonging = pull.state === 'closed' ? 'ended' : await ofBatch(repository, pull);
      // Users can push branches with such names too. Of what was deleted, Git has no proof, and this process knows it.
      const isKnown = pull.state === 'merged' && known.written.has(pull.head.branch);
      if (belonging === 'none' && !(isKnown && (await hasDeleted(repository, pull)))) continue;
      waits.push(...(await this.#finish(known, pulls, repository, pull, signal)));
    }
    for (const pull of open) {
      const proposals = listed.get(pull.head.branch) ?? [];
      const left = proposals.flatMap((one) => released.get(one) ?? []);
      if (proposals.length === 0 || left.length < proposals.length) continue;
      try {
        await releaseBatch({ ...this.#options, signal }, pulls, repository, pull, left);
      } catch (error) {
        // A pull request that a user has locked must not hold up the others.
        const pause = pauseAfter(error);
        if (pause === undefined) throw error;
        waits.push(pause);
      }
    }
    if (known.hosts.size === 1) {
      const used = new Set([...batches, ...shared.map(({ head }) => head)].map(({ branch }) => branch));
      waits.push(...(await removeLeftBranches(this.#options, pulls, repository, used, signal)));
    }
    if (
      waits.length === 0 &&
      members.length === 0 &&
      (await pulls.sharedWith(batchPrefix(repository.id), signal)).length === 0
    )
      known.hosts.delete(pulls);
    return waits;
  }

  /**
   * The same after the repository was read, if an open pull request lists one that is not there: another process may have proposed it, and a pull
   * request that is written without it, or closed, would lose it.
   */
  async #readLive(
    { gone }: KnownHost,
    repository: PackageRepository,
    pulls: readonly PullRequest[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ObjectKey>> {
    const listed = new Set<string>();
    for (const pull of pulls)
      if (pull.state === 'open') for (const one of await proposalsOf(pull, repository)) listed.add(one);
    for (const one of gone) if (!listed.has(one)) gone.delete(one);
    const live = this.#liveIn(repository);
    if ([...listed].every((one) => live.has(one) || gone.has(one))) return live;
    await repository.catchUp(signal, 'branches');
    const now = this.#liveIn(repository);
    for (const one of listed) if (!now.has(one)) gone.add(one);
    return now;
  }

  /** The proposal of this revision, by its id, if no one policy has it reviewed in pull requests. */
  #releasedAs(
    repository: PackageRepository,
    proposal: string,
    key: ObjectKey | undefined,
  ): readonly (readonly [string, ReleasedMember])[] {
    const revision = key === undefined ? undefined : this.#options.store.find(keyText(key));
    const { review, reviewProblem: problem } = revision === undefined ? {} : repository.policyFor(revision);
    return review === undefined ? [[proposal, { proposal, revision, problem }]] : [];
  }

  /** The proposals of a repository, with their revisions. */
  #liveIn({ id }: PackageRepository): ReadonlyMap<string, ObjectKey> {
    const proposed = this.#options.store.list({ repository: id, lifecycle: 'Proposed' });
    return new Map(
      proposed.map(({ uid, record, namespace, name }) => [proposalId(uid, record?.steps ?? []), { namespace, name }]),
    );
  }

  async #finish(
    known: Known,
    pulls: PullRequests,
    repository: PackageRepository,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { branch } = pull.head;
    const ref = `refs/heads/${branch}`;
    const isLeft = known.written.has(branch) || (await repository.git.resolveRef(ref)) !== undefined;
    if (pull.state === 'open' || isLeft) {
      const isKept = await mayReopen(this.#options, repository, pull);
      const isFollowed = known.written.has(branch);
      await finishBatch({ ...this.#options, signal }, pulls, repository, pull, { isKept, isFollowed });
      if (isKept) return [REOPEN_CHECK_MS];
    }
    known.written.delete(branch);
    this.#options.shown.forget(pulls, branch);
    return [];
  }

  /** Brings one pull request up to date. What the host refuses is reported by its members. */
  async #show(
    known: Known,
    pulls: PullRequests,
    repository: PackageRepository,
    batch: Batch<BatchMember>,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { failures, clock } = this.#options;
    try {
      const { isWritten, wait } = await writeBatch({ ...this.#options, signal }, pulls, repository, batch);
      known.written.add(batch.branch);
      if (isWritten) known.notBeforeMs = clock.monotonic() + PAUSE_MS;
      for (const { key } of batch.members) if (this.#failed.delete(keyText(key))) failures.end(key);
      return wait === undefined ? [] : [wait];
    } catch (error) {
      if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
      for (const { key, object } of batch.members) {
        this.#failed.add(keyText(key));
        failures.report(object, messageOf(error));
      }
      // Users may delete pull requests: then there is another one the next time.
      const { branch } = batch;
      if (error.code === 'NotFound' && (await isDeletedOnHost(pulls, { branch }, signal)))
        this.#options.shown.forget(pulls, branch);
      const pause = pauseAfter(error);
      if (pause === undefined) throw error;
      return [pause];
    }
  }
}

function noteHost({ hosts }: Known, pulls: PullRequests, last: PackageRevision): void {
  const known = hosts.get(pulls);
  if (known === undefined) hosts.set(pulls, { last, unreadSinceMs: new Map(), gone: new Set() });
  else known.last = last;
}
