import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import { PollPace } from '../../src/forge/poll-pace.ts';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { ApprovalHolds } from '../../src/package/store/unmet-rules.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { type PolicyScope, pendingRevisions } from '../proposal/pending-revisions.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import { memberOf } from './batch/batch-member.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import { Batches, isBatchesKey, leftBatches } from './batch/batches.ts';
import { placeOf } from './batch/place-of.ts';
import { CONFLICT_REASON, checksOf } from './checks/checks.ts';
import { NOTHING_MISSING } from './checks/missing-until-merge.ts';
import { closedBy, missingForMerge, unmetPublication, whenRulesChange } from './checks/unmet-publication.ts';
import { applyCommands, type CommandState, updateReply } from './commands/apply-commands.ts';
import { sharedComments } from './commands/shared-comments.ts';
import { applyEnd, isOfProposal, isPublication, isRejected, leavePull } from './ending/apply-end.ts';
import { arrivedMerges, dependenciesOf, untilNextAttempt } from './ending/awaited-merge.ts';
import { EndedProposals } from './ending/ended-proposals.ts';
import { endSuperseded, ofSamePackage, supersedingOf, variantTargets } from './ending/supersede.ts';
import { otherProposals, supersededProposals } from './ending/superseded-proposals.ts';
import { annotateProposal } from './findings/annotate-proposal.ts';
import { HostFailures } from './host-failures.ts';
import { STAYS_QUEUED } from './merging/dequeue.ts';
import { leaveWithoutPolicy } from './merging/leave-without-policy.ts';
import { mergeApproved, reportUnmerged } from './merging/merge-approved.ts';
import { MergeAttempts } from './merging/merge-attempts.ts';
import { policyForMerge, recordMergePublication } from './merging/merge-publication.ts';
import { outdatedProposals, rebuildBranch } from './merging/rebuild-branch.ts';
import { OpenedRepositories, type OpenForge } from './opened-repositories.ts';
import { linkNext, openPull } from './opening/open-pull.ts';
import { isPermanent, pauseAfter } from './pause-after.ts';
import type { PullRequests } from './pull-requests.ts';
import { RepositoryPolls } from './repository-polls.ts';
import { applyReviews, uncountedOf } from './reviews/apply-reviews.ts';
import { reviewsOf } from './reviews/read-reviews.ts';
import { commitsWithContent } from './reviews/same-content.ts';
import { REREAD_MS, waitsByReview } from './reviews/withdraw-reviews.ts';
import type { MayApprove } from './rights.ts';
import { repositoryOf, type Shown, ShownProposals, type ShownPull } from './shown-proposals.ts';
import { describeProposal } from './text/describe-proposal.ts';
import { readExplanation, readProposal } from './text/read-proposal.ts';
import { isPreparedIn, proposalId, proposalsIn } from './text/section.ts';
import { writeChecks, writePull } from './writing/write-pull.ts';

export interface PullRequestOptions {
  readonly client: Client;
  readonly store: Pick<
    RevisionStore,
    'change' | 'evaluate' | 'find' | 'list' | 'repositoryOf' | 'onPromotion' | 'update'
  >;
  /** Where policies and freezes apply. */
  readonly scope?: PolicyScope;
  readonly clock: Clock;
  readonly openForge: OpenForge;
  /** Renders proposals again, for what functions report about them. */
  readonly renderer: Renderer | undefined;
  /** Undefined where no API is served, so that no rights are granted: then the mapping of the policy decides alone. */
  readonly mayApprove: MayApprove | undefined;
  /** The same for conditions, which commands in comments set. */
  readonly maySetConditions: MayApprove | undefined;
  /** Wakes for what webhooks report of a repository, and syncs one. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe' | 'addOwn' | 'takeReview' | 'isAsWritten'> | undefined;
  /** Shared with other controllers that read pull requests. Default: its own. */
  readonly lists?: SharedLists;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** Default: no plan holds a revision. */
  readonly holds?: ApprovalHolds;
  /** Shared with explanations, which name the pull requests. Default: its own. */
  readonly shown?: ShownProposals;
}

/** Until a policy is read again of which was recorded since when merges publish. */
const BEGIN_MS = 1000;
/** A host that is loaded needs some seconds to open a pull request. */
const JUST_OPENED_MS = 5000;

/** Shows proposals as pull requests of a Git host, and takes over what users decide there. */
export function pullRequestController(options: PullRequestOptions): ControllerOptions {
  const { store, clock, openForge, requests } = options;
  const client = options.client.as({ name: REVIEW_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REVIEW_ACTOR }),
  );
  const failures = new HostFailures(store, events);
  const { shown = new ShownProposals() } = options;
  const opened = new OpenedRepositories(store, openForge, clock, options.lists ?? new SharedLists(clock));
  /** For the beginnings and ends of rules: a merge cannot be taken back. */
  const steady = new SteadyClock(clock);
  const pace = new PollPace(clock);
  const attempts = new MergeAttempts(clock);
  let enqueue: (key: ObjectKey) => void = () => undefined;
  const batches = new Batches({
    ...{ client, store, events, failures, shown, opened, clock },
    enqueue: (key) => enqueue(key),
  });
  const ended = new EndedProposals({ client, store, events, opened, clock });
  let wake: (key: ObjectKey) => void = () => undefined;
  const polls = new RepositoryPolls({
    ...{ client, store, clock, shown, opened, pace, failures, requests, batches, ended },
    wake: (key) => wake(key),
  });

  return {
    name: 'pull-request',
    sources: [
      ...pendingRevisions(store, options.scope),
      supersededProposals(store),
      leftBatches(),
      ended.source(),
      outdatedProposals(shown),
      arrivedMerges(shown),
      {
        start({ enqueue: add, prioritize }) {
          enqueue = add;
          // What a user did on the host does not wait behind other work.
          wake = (key) => {
            add(key);
            prioritize(key);
          };
          return requests?.subscribe(wake) ?? (() => undefined);
        },
      },
    ],
    maxConcurrentReconciles: 16,
    namespaceShare: { most: 8, mostFailing: 4 },
    reconcileTimeoutMs: 120_000,
    maxDelayMs: 60_000,
    // The name of a repository is a DNS label, that of a revision contains dots.
    reconcile: async (key, { signal }) => {
      try {
        if (isBatchesKey(key)) return await batches.reconcile(key, signal);
        return await (key.name.includes('.') ? reconcile(key, signal) : polls.poll(key, signal));
      } catch (error) {
        // Attempts before its end would make a rate limit last longer.
        if (!isSluiceError(error, 'TooManyRequests')) throw error;
        return { requeueAfter: pauseAfter(error) ?? 0, reason: messageOf(error) };
      }
    },
  };

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const object = await client.find(packageRevisionKind, key, { signal });
    const before = shown.get(key);
    if (object?.spec.lifecycle !== 'Proposed' || object.metadata.deletionTimestamp !== undefined)
      return end(key, before, object, signal);
    let evaluation: RevisionEvaluation;
    try {
      evaluation = await store.evaluate(keyText(key));
    } catch (error) {
      // Deleted since it was read; its deletion wakes this controller too.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
    const { review, reviewProblem } = evaluation.policy;
    if (reviewProblem !== undefined) events.record(object, 'Warning', 'PullRequestFailed', reviewProblem);
    if (store.repositoryOf(evaluation.revision).follows || review === undefined) {
      // Without one policy that says how, Sluice has nothing merged.
      if (review === undefined) {
        const reason = reviewProblem ?? 'no policy with spec.review selects it';
        const stopped = { object, revision: evaluation.revision, shown: before?.pull, reason };
        if ((await leaveWithoutPolicy(deciding(signal), stopped)) === 'stays') return STAYS_QUEUED;
      }
      if (reviewProblem === undefined) return end(key, before, object, signal);
      return undefined;
    }
    try {
      const siblings = ofSamePackage(store, evaluation.revision);
      const unmet = await unmetPublication(evaluation, siblings, { now: clock.now(), holds: options.holds });
      const result = await opened.use(evaluation.revision, review, (pulls) =>
        show(object, evaluation, { review, pulls, unmet: unmet.rules }, signal),
      );
      if (!batches.hasFailed(key)) failures.end(key);
      const next = whenRulesChange(unmet, clock.now(), result);
      const isSoon = (next?.requeueAfter ?? Number.POSITIVE_INFINITY) <= REREAD_MS;
      if (isSoon || !waitsByReview(evaluation)) return next;
      return { requeueAfter: REREAD_MS, reason: 'an approval waits whose review may end' };
    } catch (error) {
      // A process that stops reports no failure of the host.
      if (signal.aborted && !isSluiceError(signal.reason, 'Timeout')) throw error;
      return failed(object, error);
    }
  }

  /** Brings the pull request of a proposal up to date, and takes over what was decided there. */
  async function show(
    object: Stored<PackageRevision>,
    evaluation: RevisionEvaluation,
    {
      review,
      pulls,
      unmet,
    }: { readonly review: ReviewPolicy; readonly pulls: PullRequests; readonly unmet: readonly BlockingRule[] },
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const { revision, record } = evaluation;
    const key = keyOf(object);
    const { git, index } = store.repositoryOf(revision);
    // Before the first merge, and also when merges end to publish.
    await recordMergePublication(client, store.repositoryOf(revision), review, signal);
    const proposal = proposalId(revision.uid, record.steps);
    const known = shown.get(key);
    const place = await placeOf({ store, batches, signal }, { proposal, evaluation, review, known, pulls });
    const { branch, isShared } = place;
    let { pull } = place;
    if (pull !== undefined && pull.state !== 'open') {
      const waitMs = untilNextAttempt(
        known?.awaited,
        dependenciesOf({ pull, evaluation, mainHead: index.mainHead }),
        clock.monotonic(),
      );
      if (waitMs > 0) return { requeueAfter: waitMs, reason: 'the main branch has to be read' };
      // What a user decided is read again before it has an effect.
      pull = await pulls.forge.get(pull.number, signal);
      pulls.note(pull);
      const isOfIt = isShared || isOfProposal(pull, { proposal, evaluation, known });
      if (pull.state !== 'open' && isOfIt) {
        const entry = watch(key, proposal, shown.pullOf(pulls, branch, pull));
        entry.last = { revision, review };
        const { pull: shownPull } = entry;
        const read = await reviewsOf(shownPull, pull, clock.monotonic(), signal);
        const counted = await policyForMerge(client, store.repositoryOf(revision), review, pull, signal);
        if (counted === undefined) return { requeueAfter: BEGIN_MS, reason: 'the policy has to be read again' };
        noteQueue(store, pulls, revision, pull);
        const ended = { object, evaluation, review: counted, pull, ...read, forge: pulls.forge };
        // What reviewers request still stands in the way of an approval.
        if (pull.state === 'merged' && !isPublication(ended))
          await applyReviews(deciding(signal), { ...ended, review: { ...review, publishOn: 'approval' } });
        return applyEnd(deciding(signal), ended, entry);
      }
    }
    const ofPackage = ofSamePackage(store, revision);
    const targets = await variantTargets(client, revision, ofPackage, signal);
    const superseding = supersedingOf(revision, ofPackage, targets);
    const sharedOf = (other: Revision) =>
      batches.pullOf(pulls, store.repositoryOf(other), proposalId(other.uid, other.record?.steps ?? []), signal);
    const own = { pull: isShared ? undefined : pull, pulls, sharedOf };
    if (superseding !== undefined && (await endSuperseded(deciding(signal), object, superseding, own)))
      return undefined;
    const explanation = await readExplanation(client, object, signal);
    const conflict = explanation.reasons.find(({ reason }) => reason === CONFLICT_REASON);
    if (conflict === undefined) events.forgetTopic(key, 'conflict');
    else events.record(object, 'Warning', CONFLICT_REASON, conflict.message, 'conflict');
    const isOpen = pull?.state === 'open';
    // One that is opened next has no reviews.
    const read = pull;
    const reviewsNow = async () =>
      read?.state === 'open'
        ? (await reviewsOf(shown.pullOf(pulls, branch, read), read, clock.monotonic(), signal)).reviews
        : [];
    const by = { forge: pulls.forge, store, mayApprove: options.mayApprove, signal };
    const missing =
      review.publishOn === 'merge'
        ? await missingForMerge(by, { object, evaluation, review }, reviewsNow)
        : NOTHING_MISSING;
    const { progress } = missing;
    const counted = progress && `by the reviews of its pull request: ${progress}`;
    store.repositoryOf(revision).refusals.noteReviews(revision.name, 'ReviewsCounted', counted);
    const uncounted = uncountedOf(store.repositoryOf(revision), revision.name);
    const about = { explanation, review, rules: [...unmet, ...missing.rules], progress, uncounted };
    const described = await readProposal({ client, store }, object, evaluation, about, signal);
    if (isShared) {
      const annotations = await annotateProposal(evaluation, options.renderer, signal);
      batches.report(memberOf(object, evaluation, { proposal, described, annotations, left: place.left }), pulls);
      // It is listed there soon, which wakes this controller.
      if (pull === undefined || !isOpen) return undefined;
    }
    const content = { proposals: [proposal], text: describeProposal(described), review };
    const before = isOpen ? undefined : pull;
    if (pull === undefined || !isOpen)
      pull = await openPull(deciding(signal), [{ object, revision }], pulls, { branch, ...content });
    // Not before: what is neither there nor in the shared one, which ends without it, would count as rejected.
    if (!isShared) batches.withdraw(key, proposal);
    if (before !== undefined) await linkNext(deciding(signal), before, pull, pulls.forge);
    // The branch of the host follows it.
    if (!isShared && pull.head.commit !== revision.commit) pulls.notePush(branch);
    const isKnown = isOpen && proposalsIn(pull.body).length > 0;
    // What it supersedes has waited for its pull request.
    if (known === undefined) for (const other of otherProposals(store, revision)) enqueue(other);
    const shownPull = shown.pullOf(pulls, branch, pull);
    shownPull.isPrepared ??= isPreparedIn(pull.body);
    // One that was just opened has neither comments nor checks, and no reviews but those that an earlier one of the branch has.
    const isNew = !isOpen && isUntouched(pull);
    if (isNew) {
      shownPull.hasNoChecks = true;
      const hasEarlier = pulls.earlierOf(branch).some((one) => one !== shownPull.number);
      if (!hasEarlier) shownPull.reviews = { of: pull, list: [], readMs: clock.monotonic() };
    }
    const entry = watch(key, proposal, shownPull, isNew ? { of: pull } : {});
    entry.last = { revision, review };
    const { reviews } = shownPull;
    const isOld = reviews !== undefined && clock.monotonic() - reviews.readMs >= REREAD_MS;
    if (isOld && !pulls.forge.batchesReads && waitsByReview(evaluation)) delete shownPull.reviews;
    const proposed = {
      object,
      evaluation,
      review,
      pull,
      forge: pulls.forge,
      ...(await reviewsOf(shownPull, pull, clock.monotonic(), signal)),
    };
    noteQueue(store, pulls, revision, pull);
    if (await applyReviews(deciding(signal), proposed)) {
      pulls.notePush(branch);
      return undefined;
    }
    const isAt = async (commit: string) => (await commitsWithContent(git, evaluation, [commit])).size > 0;
    // While users have pushed to the branch of a batch, it does not show what is proposed.
    if (
      (!isShared || shown.isOwnHead(entry, pull.head.commit)) &&
      entry.seen?.content !== evaluation.content.content &&
      (await isAt(pull.head.commit))
    )
      shown.noteSeen(entry, { content: evaluation.content.content, at: pull.updatedAt });
    const shared = isShared ? sharedComments(shownPull, pull, key, signal) : undefined;
    const commented = { ...proposed, repository: repositoryOf(key), seen: entry.seen, state: entry.commands, shared };
    const executed = await applyCommands(deciding(signal), commented);
    if (executed !== undefined) {
      if ('requeueAfter' in executed) return executed;
      // Whatever the command was, the next reconciliation evaluates all of it again.
      for (const memory of ['text', 'checks', 'reviews'] as const) delete shownPull[memory];
      return undefined;
    }
    if (isShared) {
      if (shownPull.awaitsMerge === true) batches.wake(repositoryOf(key));
      reportUnmerged(deciding(signal), proposed);
      return undefined;
    }
    if (proposalsIn(pull.body).length === 0)
      events.record(object, 'Normal', 'PullRequestAdopted', `it is reviewed in ${pull.url}`, 'opened');
    if (isKnown && isRejected(record)) {
      const message = `${pull.url} was opened again, so that it is proposed again; approvals from before do not count`;
      events.record(object, 'Normal', 'PullRequestReopened', message, 'opened');
    }
    const annotations = await annotateProposal(evaluation, options.renderer, signal);
    const checks = checksOf(described, review.gateChecks, pull.url, annotations);
    await writeChecks(deciding(signal), shownPull, revision.commit, checks, [revision]);
    await updateReply(deciding(signal), commented, explanation);
    // By what `applyReviews` has found.
    const text = describeProposal({
      ...described,
      uncounted: uncountedOf(store.repositoryOf(revision), revision.name),
    });
    await writePull(deciding(signal), object, shownPull, pull, { ...content, text });
    const rebuilt = await rebuildBranch(deciding(signal), evaluation, review, { pull, checks, entry: shownPull });
    if (rebuilt === 'rebuilt') return undefined;
    // Last of all: the checks of the commit may be required for it.
    // By a clock that is ahead, or one that is corrected, a rule would permit it.
    const [closed] = [steady, clock].flatMap((by) => closedBy(evaluation, ofPackage, by.now()) ?? []);
    return (await mergeApproved(deciding(signal), proposed, pulls, closed)) ?? rebuilt;
  }

  function deciding(signal: AbortSignal) {
    const { mayApprove, maySetConditions } = options;
    return { client, store, events, clock, attempts, mayApprove, maySetConditions, requests, signal };
  }

  /** The proposal has ended: the last state is left in the pull request, which the host closes as the branch is gone. */
  async function end(
    key: ObjectKey,
    before: Shown | undefined,
    object: Stored<PackageRevision> | undefined,
    signal: AbortSignal,
  ): Promise<undefined> {
    batches.withdraw(key);
    const revision = store.find(keyText(key));
    if (revision !== undefined) store.repositoryOf(revision).refusals.noteQueued(revision.name, undefined);
    if (before === undefined) {
      // An earlier process may have left notes of it.
      shown.delete(key);
      return;
    }
    try {
      if (!isBatchBranch(before.pull.branch))
        await leavePull(store, before, object?.spec.lifecycle ?? 'deleted', signal);
    } catch (error) {
      // What only an operator can change does not matter any more.
      if (!isPermanent(error)) throw error;
    }
    if (!isBatchBranch(before.pull.branch)) {
      ended.note(before);
      enqueue(repositoryOf(key));
    }
    forget(key, before);
    events.forget(key);
  }

  function watch(key: ObjectKey, proposal: string, pull: ShownPull, commands: CommandState = {}): Shown {
    const before = shown.get(key);
    if (before?.proposal === proposal && before.pull === pull) return before;
    const entry = { key, proposal, pull, commands };
    shown.set(entry);
    pace.noteOpened(keyText(repositoryOf(key)));
    enqueue(repositoryOf(key));
    return entry;
  }

  function forget(key: ObjectKey, before: Shown | undefined): void {
    shown.delete(key);
    attempts.forget(keyText(key));
    if (before?.pull.members.size === 0 && !isBatchBranch(before.pull.branch))
      shown.forget(before.pull.pulls, before.pull.branch);
  }

  /** Reports a failure, except a lost race with another writer. */
  function failed(object: Stored<PackageRevision>, error: unknown): ReconcileResult {
    if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
    failures.report(object, messageOf(error));
    const key = keyOf(object);
    // Users may delete pull requests: then there is another one the next time.
    if (error.code === 'NotFound') forget(key, shown.get(key));
    const pause = pauseAfter(error);
    if (pause === undefined) throw error;
    return { requeueAfter: pause, reason: messageOf(error) };
  }
}

/** Nothing but its opening has happened to it, or did just then: the next poll makes Sluice read it once more in any case. */
function isUntouched({ createdAt, updatedAt }: PullRequest): boolean {
  return Date.parse(updatedAt) - Date.parse(createdAt) <= JUST_OPENED_MS;
}

/** Until a pull request has left the merge queue of the host, no controller pushes to the branch of the revision. */
function noteQueue(
  store: Pick<RevisionStore, 'repositoryOf'>,
  pulls: PullRequests,
  revision: Revision,
  { number, url }: PullRequest,
): void {
  store.repositoryOf(revision).refusals.noteQueued(revision.name, pulls.queued.has(number) ? url : undefined);
}
