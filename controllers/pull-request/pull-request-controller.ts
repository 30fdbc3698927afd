import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import { isPermanent, pauseAfter } from '../../src/forge/pause-after.ts';
import { PollPace } from '../../src/forge/poll-pace.ts';
import { SharedLists } from '../../src/forge/shared-lists.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SteadyClock } from '../../src/foundation/time/steady-clock.ts';
import { REVIEW_ACTOR } from '../../src/package/model/policy/review-policy.ts';
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
import { isBatchBranch, isBatchesKey } from './batch/batch-name.ts';
import { Batches } from './batch/batches.ts';
import { leftBatches } from './batch/left-batches.ts';
import { unmetPublication, whenRulesChange } from './checks/unmet-publication.ts';
import { leavePull } from './ending/apply-end.ts';
import { EndedProposals } from './ending/ended-proposals.ts';
import { LostMerges } from './ending/lost-merges.ts';
import { ofSamePackage } from './ending/supersede.ts';
import { supersededProposals } from './ending/superseded-proposals.ts';
import { HostFailures } from './host-failures.ts';
import { movedMains } from './merged/awaited-merge.ts';
import { STAYS_QUEUED } from './merging/dequeue.ts';
import { checkWithoutPolicy, leaveWithoutPolicy, NO_POLICY } from './merging/leave-without-policy.ts';
import { MergeAttempts } from './merging/merge-attempts.ts';
import { outdatedProposals } from './merging/rebuild-branch.ts';
import { OpenedRepositories, type OpenForge } from './opened-repositories.ts';
import { isDeletedOnHost } from './reading/deleted-pulls.ts';
import { RepositoryPolls } from './repository-polls.ts';
import { AskedRights, type Asking, isRightsKey } from './reviews/asked-rights.ts';
import { REREAD_MS, waitsByReview } from './reviews/withdraw-reviews.ts';
import type { MayApprove } from './rights.ts';
import { type ShowContext, showProposal } from './show-proposal.ts';
import { repositoryOf, type Shown, ShownProposals } from './shown-proposals.ts';

export interface PullRequestOptions {
  readonly client: Client;
  readonly store: Pick<
    RevisionStore,
    | 'change'
    | 'evaluate'
    | 'find'
    | 'findRepository'
    | 'list'
    | 'repositories'
    | 'repositoryOf'
    | 'onArrival'
    | 'onPromotion'
    | 'update'
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
  /** Roles and their bindings are read, so that their changes count at once. Default: the rights are asked for now and then. */
  readonly readsBindings?: boolean;
  /** Wakes for what webhooks report of a repository, and syncs one. Default: none. */
  readonly requests?: Pick<SyncRequests, 'subscribe' | 'onCheck' | 'addOwn' | 'takeReview' | 'isAsWritten'> | undefined;
  /** Shared with other controllers that read pull requests. Default: its own. */
  readonly lists?: SharedLists;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
  /** Default: no plan holds a revision. */
  readonly holds?: ApprovalHolds;
  /** Shared with explanations, which name the pull requests. Default: its own. */
  readonly shown?: ShownProposals;
}

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
  const steady = new SteadyClock(clock);
  const pace = new PollPace(clock);
  const attempts = new MergeAttempts(clock);
  let enqueue: (key: ObjectKey) => void = () => undefined;
  const batches = new Batches({
    ...{ client, store, events, failures, shown, opened, clock },
    enqueue: (key) => enqueue(key),
  });
  const ended = new EndedProposals({ client, store, events, opened, shown, clock });
  const rights = new AskedRights(clock, (key) => enqueue(key));
  const lost = new LostMerges({ client, store, events, opened, clock, batches });
  let wake: (key: ObjectKey) => void = () => undefined;
  const polls = new RepositoryPolls({
    ...{ client, store, clock, shown, opened, pace, failures, requests, batches, ended },
    wake: (key) => wake(key),
  });

  return {
    name: 'pull-request',
    sources: [
      ...(options.readsBindings === true ? [rights.source()] : []),
      lost.source(),
      ...pendingRevisions(store, options.scope),
      supersededProposals(store),
      leftBatches(shown),
      ended.source(),
      outdatedProposals(shown),
      movedMains(shown),
      {
        start({ enqueue: add, prioritize }) {
          enqueue = add;
          // What a user did on the host does not wait behind other work.
          wake = (key) => {
            add(key);
            prioritize(key);
          };
          const ends = [requests?.subscribe(wake), requests?.onCheck(noteCheck)];
          return () => {
            for (const end of ends) end?.();
          };
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
        if (isRightsKey(key)) return await rights.look(key, (one) => enqueue(one), signal);
        return await (key.name.includes('.') ? reconcile(key, signal) : poll(key, signal));
      } catch (error) {
        // Attempts before its end would make a rate limit last longer.
        if (!isSluiceError(error, 'TooManyRequests')) throw error;
        return { requeueAfter: pauseAfter(error) ?? 0, reason: messageOf(error) };
      }
    },
  };

  async function poll(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    for (const one of lost.find(key)) wake(one);
    return polls.poll(key, signal);
  }

  /** A check of a commit has ended: what Sluice is to merge may have waited for it. */
  function noteCheck(repository: ObjectKey, commit: string): void {
    for (const { key } of shown.inRepository(repository)) if (attempts.noteMessage(keyText(key), commit)) wake(key);
  }

  async function reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const object = await client.find(packageRevisionKind, key, { signal });
    const before = shown.get(key);
    if (object === undefined) {
      const restored = await lost.restore(key, before, signal);
      // It is there again, which wakes this controller.
      if (restored === true) return undefined;
      if (restored !== false) return restored;
    }
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
        const reason = reviewProblem ?? NO_POLICY;
        const stopped = { object, revision: evaluation.revision, shown: before?.pull, reason };
        if ((await leaveWithoutPolicy(contextWith(signal), stopped)) === 'stays') return STAYS_QUEUED;
        await checkWithoutPolicy(contextWith(signal), stopped);
      }
      if (reviewProblem === undefined) return end(key, before, object, signal);
      batches.withdraw(key);
      return undefined;
    }
    const asking = rights.about(repositoryOf(key), key);
    try {
      const siblings = ofSamePackage(store, evaluation.revision);
      const unmet = await unmetPublication(evaluation, siblings, { now: clock.now(), holds: options.holds });
      const result = await opened.use(evaluation.revision, review, (pulls) =>
        showProposal(contextWith(signal, asking), { object, evaluation, review, pulls, unmet: unmet.rules }),
      );
      asking.keep();
      if (!batches.hasFailed(key)) failures.end(key);
      const next = whenRulesChange(unmet, clock.now(), result);
      const isSoon = (next?.requeueAfter ?? Number.POSITIVE_INFINITY) <= REREAD_MS;
      if (isSoon || !waitsByReview(evaluation)) return next;
      return { requeueAfter: REREAD_MS, reason: 'an approval waits whose review may end' };
    } catch (error) {
      // A process that stops reports no failure of the host.
      if (signal.aborted && !isSluiceError(signal.reason, 'Timeout')) throw error;
      return await failed(object, error, signal);
    }
  }

  function contextWith(signal: AbortSignal, asking?: Asking): ShowContext {
    const { maySetConditions, renderer } = options;
    const mayApprove = asking === undefined ? options.mayApprove : asking.rights(options.mayApprove);
    const knownRights = asking === undefined ? options.mayApprove : asking.knownRights(options.mayApprove);
    return {
      ...{ client, store, events, clock, steady, attempts, requests, renderer, shown, batches, pace, signal },
      ...{ mayApprove, knownRights, maySetConditions },
      ...(asking === undefined ? {} : { teamsOf: asking.teams }),
      enqueue: (key) => enqueue(key),
    };
  }

  /** The proposal has ended: the last state is left in the pull request, which the host closes as the branch is gone. */
  async function end(
    key: ObjectKey,
    before: Shown | undefined,
    object: Stored<PackageRevision> | undefined,
    signal: AbortSignal,
  ): Promise<undefined> {
    batches.withdraw(key);
    rights.forget(repositoryOf(key), key);
    const revision = store.find(keyText(key));
    if (revision !== undefined) store.repositoryOf(revision).refusals.noteQueued(revision.name, undefined);
    if (before === undefined) {
      // An earlier process may have left notes of it.
      shown.delete(key);
      return;
    }
    const { pulls, branch } = before.pull;
    let left: PullRequest | undefined;
    try {
      if (!isBatchBranch(branch)) left = await leavePull(store, before, object?.spec.lifecycle ?? 'deleted', signal);
    } catch (error) {
      // What only an operator can change does not matter any more.
      if (!isPermanent(error)) throw error;
    }
    if (!isBatchBranch(branch)) {
      ended.note(before);
      enqueue(repositoryOf(key));
    }
    forget(key, before);
    // A merge that was read before is in no later list.
    if (left?.state === 'merged') {
      await pulls.ofBranch(branch, signal);
      pulls.note(left);
    }
    events.forget(key);
  }

  function forget(key: ObjectKey, before: Shown | undefined): void {
    shown.delete(key);
    attempts.forget(keyText(key));
    if (before?.pull.members.size === 0 && !isBatchBranch(before.pull.branch))
      shown.forget(before.pull.pulls, before.pull.branch);
  }

  /** Reports a failure, except a lost race with another writer. */
  async function failed(
    object: Stored<PackageRevision>,
    error: unknown,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
    failures.report(object, messageOf(error));
    const key = keyOf(object);
    const before = error.code === 'NotFound' ? shown.get(key) : undefined;
    if (before !== undefined) {
      const { pulls, branch } = before.pull;
      // Users may delete pull requests: then there is another one the next time, or that of a user, which may end before.
      if (await isDeletedOnHost(pulls, before.pull, signal)) {
        forget(key, before);
        await pulls.ofBranch(branch, signal);
      }
    }
    const pause = pauseAfter(error);
    if (pause === undefined) throw error;
    return { requeueAfter: pause, reason: messageOf(error) };
  }
}
