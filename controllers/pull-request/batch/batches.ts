import { isDeepStrictEqual } from 'node:util';
import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { pauseAfter } from '../../../src/forge/pause-after.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
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
import { proposalId, proposalsIn, sectionOf } from '../text/section.ts';
import { membersAt } from './batch-branch.ts';
import type { BatchMember } from './batch-member.ts';
import { batchBranch, batchesKey, batchPrefix, repositoryOfBatches } from './batch-name.ts';
import { ofBatch } from './batch-pulls.ts';
import { isBatchEnd } from './describe-batch.ts';
import { leftMembers, removeLeftBranches } from './left-batches.ts';
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
  readonly members: Map<string, { readonly member: BatchMember; readonly pulls: PullRequests }>;
  /** Proposals with a pull request of their own. */
  readonly apart: Set<string>;
  /** Proposals that are listed and not reported yet, since when, in milliseconds of running time. */
  readonly unreadSinceMs: Map<string, number>;
  /** Proposals that are listed and were not in the repository when it was read for them. */
  readonly gone: Set<string>;
  /** Where there may be batches. */
  readonly pulls: Set<PullRequests>;
  /** Branches that this process has written. */
  readonly written: Set<string>;
  /** When they may be written next, in milliseconds of running time. */
  notBeforeMs: number;
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
  /** A revision of the repository of each host. */
  readonly #last = new WeakMap<PullRequests, BatchMember['revision']>();
  /** Keys of members whose pull request could not be written. */
  readonly #failed = new Set<string>();

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Hosts that the batches of a repository use. */
  pullsOf(repository: ObjectKey): Iterable<PullRequests> {
    return this.#known.get(keyText(repository))?.pulls ?? [];
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
    known.pulls.add(pulls);
    this.#last.set(pulls, member.revision);
    known.apart.delete(member.proposal);
    const before = known.members.get(keyText(member.key));
    const isSame = before?.member.proposal === member.proposal;
    const seenMs = isSame ? before.member.seenMs : this.#options.clock.monotonic();
    const now = { member: { ...member, seenMs }, pulls };
    known.members.set(keyText(member.key), now);
    if (!isDeepStrictEqual(shownOf(before?.member), shownOf(now.member))) this.wake(repository);
  }

  /** A proposal has ended, or has a pull request of its own, which is stated by `proposal`. */
  withdraw(key: ObjectKey, proposal?: string): void {
    const repository = repositoryOf(key);
    const known = this.#known.get(keyText(repository));
    this.#failed.delete(keyText(key));
    if (proposal !== undefined) known?.apart.add(proposal);
    if (known?.members.delete(keyText(key)) === true) this.wake(repository);
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
    const waits: number[] = [];
    for (const pulls of known.pulls) waits.push(...(await this.#reconcileOn(known, pulls, signal)));
    if (waits.length === 0) return undefined;
    return { requeueAfter: Math.min(...waits), reason: 'further proposals may follow' };
  }

  /** What earlier processes left, of which no proposal may be left to report it. */
  async #find(repository: ObjectKey): Promise<Known | undefined> {
    const { store, opened, enqueue } = this.#options;
    const left = await leftMembers(store, repository);
    if (left === undefined) return undefined;
    for (const { revision, review } of left) {
      const pulls = opened.of(revision, review);
      this.#last.set(pulls, revision);
      this.#knownOf(repository).pulls.add(pulls);
    }
    // No proposal may be left that has its pull requests polled.
    enqueue(repository);
    return this.#known.get(keyText(repository));
  }

  #knownOf(repository: ObjectKey): Known {
    const known = this.#known.get(keyText(repository)) ?? {
      ...{ members: new Map(), apart: new Set<string>(), unreadSinceMs: new Map(), gone: new Set<string>() },
      ...{ pulls: new Set<PullRequests>(), written: new Set<string>(), notBeforeMs: 0 },
    };
    this.#known.set(keyText(repository), known);
    return known;
  }

  /** Returns after how many milliseconds to reconcile again. */
  async #reconcileOn(known: Known, pulls: PullRequests, signal: AbortSignal): Promise<readonly number[]> {
    const { store, clock, enqueue } = this.#options;
    const some = this.#last.get(pulls);
    if (some === undefined) return [];
    const repository = store.repositoryOf(some);
    for (const pull of await pulls.sharedWith(batchPrefix(repository.id), signal))
      if (pull.state === 'open') await reopenBatch({ ...this.#options, signal }, pulls, repository, pull);
    const all = await pulls.sharedWith(batchPrefix(repository.id), signal);
    const live = await this.#readLive(known, repository, all, signal);
    for (const one of known.apart) if (!live.has(one)) known.apart.delete(one);
    // One that has just been published is not withdrawn yet.
    const members = [...known.members.values()].flatMap((one) =>
      one.pulls === pulls && live.has(one.member.proposal) ? one.member : [],
    );
    const read = new Map(members.map((one) => [one.proposal, one]));
    const open: PullRequest[] = [];
    const ended = new Map<string, number>();
    /** By branch: those that are still proposed there. */
    const listed = new Map<string, readonly string[]>();
    for (const pull of all) {
      const { number, state, head } = pull;
      const proposals = (await proposalsOf(pull, repository)).filter(
        (one) => live.has(one) && !known.apart.has(one) && read.get(one)?.left.includes(number) !== true,
      );
      listed.set(head.branch, proposals);
      if (state === 'open') open.push(pull);
      else for (const one of proposals) ended.set(one, number);
    }
    const unreported = open.flatMap(({ head }) => listed.get(head.branch) ?? []).filter((one) => !read.has(one));
    // What looks released by an old policy would lose its text.
    if (unreported.length > 0) await repository.refreshPolicies();
    const released = new Map(unreported.flatMap((one) => this.#releasedAs(repository, one, live.get(one))));
    const unread = unreported.filter((one) => !released.has(one));
    for (const one of known.unreadSinceMs.keys()) if (!unread.includes(one)) known.unreadSinceMs.delete(one);
    for (const one of unread) known.unreadSinceMs.set(one, known.unreadSinceMs.get(one) ?? clock.monotonic());
    if (unread.some((one) => clock.monotonic() - (known.unreadSinceMs.get(one) ?? 0) < MAX_UNREAD_MS)) {
      for (const one of unread) enqueue(live.get(one) ?? { name: '' });
      return [UNREAD_RETRY_MS];
    }
    const { batches, waitMs } = planBatches(
      // Those of a pull request that has ended are published, rejected or released by themselves.
      members.filter(({ proposal }) => !ended.has(proposal)),
      open.map(({ head: { branch } }) => ({ branch, proposals: listed.get(branch) ?? [] })),
      (founder) => batchBranch(repository.id, founder),
      clock.monotonic(),
    );
    const waits = waitMs === undefined ? [] : [waitMs];
    for (const batch of batches)
      if (batch.members.length > 0) waits.push(...(await this.#show(known, pulls, repository, batch, signal)));
    const unused = all.filter(({ head: { branch } }) => {
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
    if (known.pulls.size === 1) {
      const used = new Set([...batches, ...all.map(({ head }) => head)].map(({ branch }) => branch));
      waits.push(...(await removeLeftBranches(this.#options, pulls, repository, used, signal)));
    }
    if (
      waits.length === 0 &&
      members.length === 0 &&
      (await pulls.sharedWith(batchPrefix(repository.id), signal)).length === 0
    )
      known.pulls.delete(pulls);
    return waits;
  }

  /**
   * The same after the repository was read, if an open pull request lists one that is not there: another process may have proposed it, and a pull
   * request that is written without it, or closed, would lose it.
   */
  async #readLive(
    known: Known,
    repository: PackageRepository,
    pulls: readonly PullRequest[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ObjectKey>> {
    const listed = new Set<string>();
    for (const pull of pulls)
      if (pull.state === 'open') for (const one of await proposalsOf(pull, repository)) listed.add(one);
    for (const one of known.gone) if (!listed.has(one)) known.gone.delete(one);
    const live = this.#liveIn(repository);
    if ([...listed].every((one) => live.has(one) || known.gone.has(one))) return live;
    await repository.catchUp(signal, 'branches');
    const now = this.#liveIn(repository);
    for (const one of listed) if (!now.has(one)) known.gone.add(one);
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

/** Each proposal looks for its pull request among all of them: their long texts are searched once. */
const markedIn = new WeakMap<PullRequest, readonly string[]>();

/** Where a user has removed the marker from the text, the commits of the branch have the proposals too. */
async function proposalsOf(pull: PullRequest, { git }: PackageRepository): Promise<readonly string[]> {
  const { body, head } = pull;
  const marked = markedIn.get(pull) ?? proposalsIn(body);
  markedIn.set(pull, marked);
  if (marked.length > 0) return marked;
  return ((await membersAt(git, head.commit)) ?? []).map(({ proposal }) => proposal);
}

/** Whether a revision of a shared pull request is gone. */
async function hasDeleted({ git, index }: PackageRepository, { head }: PullRequest): Promise<boolean> {
  return ((await membersAt(git, head.commit)) ?? []).some(({ name }) => index.get(name) === undefined);
}

/** What decides whether a pull request has to be written. */
function shownOf(member: BatchMember | undefined) {
  if (member === undefined) return undefined;
  const { proposal, tree, described, annotations, policy, maxPackages, commands, left, isReviewed } = member;
  return { proposal, tree, described, annotations, policy, maxPackages, commands, left, isReviewed };
}
