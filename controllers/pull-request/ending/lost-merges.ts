import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import { type Source, triggerSource } from '../../../src/controller/source.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import {
  type RevisionKey,
  revisionKeyOf,
  revisionName,
  revisionUid,
} from '../../../src/package/model/identity/identity.ts';
import { packagePath, parseRef, proposedRef, recordRef } from '../../../src/package/model/identity/layout.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { RevisionRecord } from '../../../src/package/model/record/record.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { DELETED } from '../../../src/package/trust/ledger/trust-ledger.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { Batches } from '../batch/batches.ts';
import { fetchHead } from '../merged/fetch-head.ts';
import { policyForMerge } from '../merged/merge-publication.ts';
import type { OpenedRepositories } from '../opened-repositories.ts';
import type { PullRequests } from '../pull-requests.ts';
import { repositoryOf, type Shown } from '../shown-proposals.ts';
import { inlineCode } from '../text/quote.ts';
import { proposalId } from '../text/section.ts';
import { isOfProposal } from './is-of-proposal.ts';
import { isOfLostProposal, leftRecord } from './left-record.ts';
import { reportLostMerge } from './report-lost-merge.ts';

const HEADS = 'refs/heads/';
/** Until a policy is read again of which was recorded since when merges publish. */
const BEGIN_MS = 1000;
/** Proposals of which the branch was restored that are remembered. */
const MAX_RESTORED = 1000;
/**
 * Proposals that an earlier process left without a branch for each of which the host is searched, in a repository; of others, only what the host lists
 * as changed last is known. Their number grows with the history, as those stay whose branches users removed for good.
 */
const MAX_SEARCHED = 100;
/** What was merged longer ago was reported, or is known to those who merged it. */
const MAX_REPORTED_MS = 7 * 86_400_000;

export interface LostMergesOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'findRepository' | 'onArrival' | 'onPromotion' | 'repositories'>;
  readonly events: EventDeduplicator;
  readonly opened: OpenedRepositories;
  readonly batches: Pick<Batches, 'pullOf'>;
  readonly clock: Clock;
}

/** A proposal of which the branch is gone. */
interface Left {
  readonly key: RevisionKey;
  readonly name: string;
  readonly ref: string;
  /** Undefined where that is gone too. */
  readonly record: RevisionRecord | undefined;
  readonly repository: PackageRepository;
  /** What this process knows of it. */
  readonly known: Shown | undefined;
}

/**
 * Users, or the host, may delete the branch of a pull request right after its merge. If Sluice reads the deletion first, only the record of the
 * proposal is left. Its branch is restored at the head that was merged, so that the merge is published as all others are.
 */
export class LostMerges {
  readonly #options: LostMergesOptions;
  /** Repositories of which the records were read for what earlier processes left. */
  readonly #searched = new WeakSet<PackageRepository>();
  /** For how many proposals of a repository the host was searched. */
  readonly #searches = new WeakMap<PackageRepository, number>();
  /** Proposals of which the branch was restored, and read since: a user who removes it again does so on purpose. */
  readonly #restored = new LruCache<string, true>({ maxEntries: MAX_RESTORED });

  constructor(options: LostMergesOptions) {
    this.#options = options;
  }

  /** Wakes for each repository: an earlier process may have ended before it read a merge. */
  source(): Source<ObjectKey> {
    const { store } = this.#options;
    return triggerSource((enqueue) => {
      const wake = (id: string) =>
        enqueue({ namespace: id.split('/', 1)[0] ?? '', name: id.slice(id.indexOf('/') + 1) });
      for (const { id } of store.repositories()) wake(id);
      store.onArrival(wake);
      return store.onPromotion(wake);
    });
  }

  /** The revisions of a repository of which only a record is left; once for each repository that is opened. */
  find(key: ObjectKey): readonly ObjectKey[] {
    const repository = this.#options.store.findRepository(keyText(key));
    if (repository === undefined || repository.follows || this.#searched.has(repository)) return [];
    const { layout, index } = repository;
    const found: ObjectKey[] = [];
    for (const [ref] of index.recordRefs()) {
      const meaning = parseRef(layout, ref);
      if (meaning.kind !== 'record') continue;
      const name = revisionName({ ...meaning, repository: repository.repository });
      if (index.get(name) === undefined) found.push({ namespace: repository.namespace, name });
    }
    this.#searched.add(repository);
    return found;
  }

  /**
   * Restores the branch of a proposal that is gone, if its pull request was merged and that publishes it; where it cannot, an event of the Repository
   * reports the merge. Returns when to do it again, or whether the proposal is there again.
   */
  async restore(key: ObjectKey, known: Shown | undefined, signal: AbortSignal): Promise<ReconcileResult | boolean> {
    const left = await this.#readLeft(key, known, signal);
    if (left === undefined) return false;
    const { repository, record } = left;
    await repository.refreshPolicies();
    const { namespace } = repository;
    const path = packagePath(repository.layout, left.key.package);
    const subject = { key: left.key, name: left.name, namespace, path, kptfile: known?.last?.revision.kptfile, record };
    const review = repository.policyFor(subject).review ?? known?.last?.review;
    if (review === undefined) return false;
    return this.#options.opened.use(subject, review, (pulls) => this.#restoreOn(left, review, pulls, signal));
  }

  async #readLeft(key: ObjectKey, known: Shown | undefined, signal: AbortSignal): Promise<Left | undefined> {
    const repository = this.#options.store.findRepository(keyText(repositoryOf(key)));
    if (repository === undefined || repository.follows) return undefined;
    const { layout, index, trust } = repository;
    const of = known?.last?.revision.key ?? revisionKeyOf(key.name);
    const path = packagePath(layout, of.package);
    const scope = { package: path, workspace: of.workspace };
    const record = await leftRecord(repository, recordRef(layout, path, of.workspace), scope);
    const left = { key: of, name: key.name, ref: proposedRef(layout, of), record, repository, known };
    if (record !== undefined) return isOfLostProposal(record) && index.get(key.name) === undefined ? left : undefined;
    // One that no record describes is published as a pull request of a user; one that was deleted through Sluice is not.
    const mark = trust.mark(scope);
    if (known === undefined || mark === undefined || mark.digest === DELETED) return undefined;
    // Another process may have published it, which reads branches before tags.
    await repository.catchUp(signal);
    return index.get(key.name) === undefined ? left : undefined;
  }

  async #restoreOn(
    left: Left,
    review: ReviewPolicy,
    pulls: PullRequests,
    signal: AbortSignal,
  ): Promise<ReconcileResult | boolean> {
    const { repository, name, ref, record, known } = left;
    const { client } = this.#options;
    const branch = ref.slice(HEADS.length);
    const steps = record?.steps ?? [];
    const began = Date.parse(steps.findLast(({ action }) => action === 'propose')?.at ?? '') || 0;
    const isSearched = known !== undefined || this.#countSearch(repository) <= MAX_SEARCHED;
    const proposal =
      record === undefined ? known?.proposal : proposalId(revisionUid(name, repository.namespace), steps);
    if (proposal === undefined) return false;
    const own = await (isSearched ? pulls.lastOfBranch(branch, began, signal) : pulls.ofBranch(branch, signal));
    const last = own ?? (await this.#options.batches.pullOf(pulls, repository, proposal, signal));
    if (last === undefined) return false;
    const pull = await pulls.forge.get(last.number, signal);
    pulls.note(pull);
    if (pull.state !== 'merged') return false;
    const evaluation = { revision: { commit: record?.commit ?? '' }, record: { steps } };
    const isShared = own === undefined;
    if (!isShared && !isOfProposal(pull, { proposal, evaluation, known })) return false;
    const counted = await policyForMerge(client, repository, review, pull, signal);
    if (counted === undefined) return { requeueAfter: BEGIN_MS, reason: 'the policy has to be read again' };
    const isDecision = (mergeOf: string | undefined) =>
      mergeOf === pull.head.commit || (isShared && mergeOf !== undefined);
    const isDecided = record?.approvals?.some(({ mergeOf }) => isDecision(mergeOf)) === true;
    // The head of a shared one has its packages, and not its commits.
    const commit = isShared ? (record?.commit ?? '') : pull.head.commit;
    const problem =
      record === undefined
        ? 'its record is gone too, so that it is not known who proposed and approved it'
        : counted.publishOn !== 'merge' && !isDecided
          ? 'the policy does not let merges publish'
          : this.#restored.has(proposal)
            ? 'the branch was removed again after Sluice had restored it'
            : await restoreBranch(repository, { ref, commit }, pull, signal);
    if (problem !== undefined) {
      await this.#report(left, pulls, pull, { problem, commit }, signal);
      return false;
    }
    await repository.refresh();
    if (repository.index.get(name) === undefined) return false;
    this.#restored.set(proposal, true);
    return true;
  }

  #countSearch(repository: PackageRepository): number {
    const count = (this.#searches.get(repository) ?? 0) + 1;
    this.#searches.set(repository, count);
    return count;
  }

  async #report(
    { repository, name, ref }: Left,
    { forge }: PullRequests,
    pull: PullRequest,
    { problem, commit }: { readonly problem: string; readonly commit: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { client, events, clock } = this.#options;
    const isOld = clock.now() - Date.parse(pull.closedAt ?? pull.updatedAt) > MAX_REPORTED_MS;
    const key = { namespace: repository.namespace, name: repository.repository };
    const object = isOld ? undefined : await client.find(repositoryKind, key, { signal });
    if (object === undefined) return;
    const why = `but ${name} is not published: its branch was removed before Sluice read the merge, and ${problem}; to propose it as it was merged, push ${inlineCode(commit)} to ${inlineCode(ref.slice(HEADS.length))}`;
    await reportLostMerge({ client, events, forge, signal }, object, pull, why);
  }
}

/** Returns why it cannot be restored; undefined if the branch is there. */
async function restoreBranch(
  repository: PackageRepository,
  { ref, commit }: { readonly ref: string; readonly commit: string },
  pull: PullRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const isFetched = await fetchHead(repository, pull, signal);
    const [stat] = await repository.git.statObjects(isFetched && isOid(commit) ? [commit] : []);
    if (stat === undefined) return 'the repository does not have the commit that was merged';
    await repository.untracked.writeBranch({ type: 'create', ref, new: commit }, signal);
  } catch (error) {
    // Another process, or a user, was faster.
    if (isSluiceError(error, 'Conflict')) await repository.catchUp(signal, 'branches');
    else if (isSluiceError(error, 'PushRefused')) return `the host refuses to restore it: ${messageOf(error)}`;
    else throw error;
  }
  return undefined;
}
