import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Review } from '../../../src/forge/forge.ts';
import type { MergeObstacle, MergeOutcome } from '../../../src/forge/forge-merging.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { Approval } from '../../../src/package/model/record/record.ts';
import { approverOfRecord } from '../../../src/package/model/record/withdrawn-approval.ts';
import { decisionOf, mergesOnHost } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EntryPoint, RequestContext } from '../../../src/resource/object/request-context.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import type { PullRequests } from '../pull-requests.ts';
import { verdictsOf } from '../reviews/apply-reviews.ts';
import type { ReviewContext, ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import { changesRequestedBy } from '../reviews/verdicts.ts';
import { type MergeAttempt, repositoryOf } from '../shown-proposals.ts';
import { commitLine, plainLine } from '../text/quote.ts';
import { dequeue, freezeOf } from './dequeue.ts';
import { rebuildOnMain, UNKNOWN_MS } from './rebuild-branch.ts';
import { withdrawnApproval } from './withdrawn-approvals.ts';

export interface MergingContext extends Omit<ReviewContext, 'store'> {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'repositoryOf' | 'update'>;
  readonly clock: Clock;
  /** For the ends of freezes: a merge cannot be taken back. */
  readonly steady: Pick<Clock, 'now'>;
  readonly requests: Pick<SyncRequests, 'add'> | undefined;
}

/** A decision is made again before a merge once it is so old, in milliseconds; the kernel counts it for twice as long. */
const FRESH_MS = 1_800_000;
/** Between two attempts: at first, and at most. Checks of the host that are missing change nothing that a poll would show. */
const RETRY_MS = 60_000;
const UNKNOWN_RETRY_MS = 5000;
const MAX_RETRY_MS = 600_000;
/** Between two looks at the methods that the host permits. */
const METHOD_RETRY_MS = MAX_RETRY_MS;
const QUEUED_RETRY_MS = 300_000;
/** Until what the host merged, or has not read yet, is looked at again. */
const SOON_MS = 1000;
const MAX_TITLE_CHARACTERS = 250;

const RETRY_OF: Readonly<Partial<Record<MergeObstacle, number>>> = {
  ...{ unknown: UNKNOWN_RETRY_MS, method: METHOD_RETRY_MS },
};

const NEXT: Readonly<Record<MergeObstacle, string>> = {
  conflict:
    'resolve the conflict in the branch, or reject the revision and propose it again on the present main branch',
  behind: 'Sluice updates the branch as soon as it has read the main branch',
  blocked:
    'satisfy the rules of the branch on the host (checks, reviews), or permit the user or App of Sluice to merge',
  draft: 'mark the pull request as ready for review',
  method: 'permit the method of spec.review.mergeMethod on the host, or name another one in the policy',
  closed: 'open the pull request again',
  unknown: 'the host has not computed yet whether it can be merged; it is tried again',
};

/**
 * Has the host merge a proposal that is approved, where its rules reserve the main branch for merges. The kernel has decided and the decision is in
 * the record, for this commit; it decides once more before each attempt, and the host merges that commit only. What follows is that of any
 * merge: the commit is published when it was fetched, by this process or the next one.
 */
export async function mergeApproved(
  context: MergingContext,
  proposal: ReviewedProposal,
  pulls: PullRequests,
  memory: { attempt?: MergeAttempt },
): Promise<ReconcileResult | undefined> {
  const { store, events, clock, steady, requests, signal } = context;
  const { object, evaluation, review, pull } = proposal;
  const { revision } = evaluation;
  const decision = decisionOf(evaluation, revision.namespace);
  const repository = store.repositoryOf(revision);
  if (decision === undefined || !mergesOnHost(review, decision.face)) {
    delete memory.attempt;
    repository.noteNotMerged(revision.name, undefined);
    return undefined;
  }
  const { attempt } = memory;
  // The section in its body may have been written since.
  const { updatedAt } = (await pulls.ofBranch(pull.head.branch, signal)) ?? pull;
  const onto = repository.index.mainHead;
  // Where heads have to be up to date, the host does not report that one is not any more.
  const isSameBase = attempt?.onto === onto || !pulls.isUpToDateRequired;
  const freeze = freezeOf(evaluation, steady.now());
  const isFrozen = freeze !== undefined;
  const isSameHead = attempt?.commit === revision.commit && isSameBase && attempt.method === review.mergeMethod;
  const isSame = isSameHead && attempt.of === updatedAt && attempt.isFrozen === isFrozen;
  // It has not been merged yet, so that what stops the line stops it.
  if (freeze !== undefined && pulls.queued.has(pull.number)) await dequeue(context, proposal, pulls, freeze);
  if (attempt !== undefined && isSame && clock.monotonic() < attempt.until)
    return { requeueAfter: attempt.until - clock.monotonic(), reason: 'the host does not merge yet' };

  // The same request would be refused again until the policy or the settings of the host change.
  if (attempt?.obstacle === 'method' && attempt.method === review.mergeMethod) {
    const permitted = await pulls.merging.mergeMethods(pull.base.branch, signal);
    if (permitted === undefined ? isSame : !permitted.includes(review.mergeMethod))
      return wait(`the host does not permit the method ${review.mergeMethod}`, METHOD_RETRY_MS, 'method');
  }

  const age = clock.now() - Date.parse(decision.at);
  const isFresh = decision.mergeOf === revision.commit && age >= 0 && age < FRESH_MS;
  // A decision that no longer stands must not be made again.
  const withdrawn = await objectionOf(context, proposal, decision, proposal.reviews);
  if (withdrawn !== undefined) {
    if (pulls.queued.has(pull.number)) await dequeue(context, proposal, pulls, withdrawn);
    return wait(withdrawn, RETRY_MS);
  }
  // By a clock that is ahead the kernel would permit it.
  const isOver = freeze !== undefined && freezeOf(evaluation, clock.now()) === undefined;
  const refusal = isOver ? freeze : await decide(context, proposal, decision, isFresh);
  if (refusal !== undefined) return wait(refusal, RETRY_MS);
  // The record has changed, which wakes this controller again.
  if (!isFresh) return undefined;

  const now = await pulls.forge.get(pull.number, signal);
  if (now.state !== 'open' || now.base.branch !== pull.base.branch || now.head.branch !== pull.head.branch) {
    pulls.note(now);
    return { requeueAfter: SOON_MS, reason: 'the pull request has changed' };
  }
  if (now.head.commit !== revision.commit)
    return { requeueAfter: SOON_MS, reason: 'the host has not read the branch yet' };
  const objection = await objectionOf(context, proposal, decision, await proposal.readReviews());
  if (objection !== undefined) return wait(objection, RETRY_MS);
  const title = commitLine(pull.title, MAX_TITLE_CHARACTERS);
  const message = commitLine(`Package revision ${revision.name}, approved by ${decision.subject} at ${decision.at}`);
  const wanted = { headCommit: revision.commit, method: review.mergeMethod, title, message };
  let outcome: MergeOutcome;
  try {
    outcome = await pulls.merging.merge(pull.number, wanted, signal);
  } catch (error) {
    if (isSluiceError(error, 'Conflict')) return { requeueAfter: SOON_MS, reason: 'the branch has changed' };
    if (isSluiceError(error))
      repository.noteNotMerged(revision.name, { message: `${pull.url} is not merged: ${messageOf(error)}` });
    throw error;
  }
  if (outcome.state === 'refused') {
    const { obstacle, message: words } = outcome;
    takeOverQueue(false);
    if (obstacle === 'behind') pulls.noteBehind();
    const since = isSameHead ? (attempt.unknownSinceMs ?? clock.monotonic()) : clock.monotonic();
    // Some hosts state no more of a conflict.
    const isUnknownForLong = obstacle === 'unknown' && clock.monotonic() - since >= UNKNOWN_MS;
    if (obstacle === 'behind' || obstacle === 'conflict' || isUnknownForLong) {
      // The new head wakes this controller, and is decided on again.
      if (await rebuildOnMain(context, evaluation)) return undefined;
      // The main branch may have moved on the host alone.
      requests?.add(repositoryOf(keyOf(object)), 'branches');
    }
    return wait(plainLine(words), RETRY_OF[obstacle] ?? RETRY_MS, obstacle, since);
  }
  if (outcome.state === 'queued') {
    takeOverQueue(true);
    return wait('it is in the merge queue of the host', QUEUED_RETRY_MS);
  }
  repository.noteNotMerged(revision.name, undefined);
  delete memory.attempt;
  pulls.note(await pulls.forge.get(pull.number, signal));
  requests?.add(repositoryOf(keyOf(object)), 'branches');
  return { requeueAfter: SOON_MS, reason: 'the merge has to be read' };

  function takeOverQueue(isQueued: boolean): void {
    pulls.queued.note(pull.number, isQueued);
    repository.noteQueued(revision.name, isQueued ? pull.url : undefined);
  }

  function wait(why: string, first: number, obstacle?: MergeObstacle, sinceMs?: number): ReconcileResult {
    const next = obstacle === undefined ? undefined : NEXT[obstacle];
    const message = `${pull.url} is not merged: ${why}`;
    events.record(object, 'Warning', 'NotMerged', next === undefined ? message : `${message}; ${next}`, 'merge');
    repository.noteNotMerged(revision.name, {
      message,
      ...(next === undefined ? {} : { next: `${next}: ${pull.url}` }),
    });
    const delay = isSame ? Math.min(MAX_RETRY_MS, Math.max(first, (attempt?.delay ?? 0) * 2)) : first;
    const unknownSinceMs = obstacle === 'unknown' ? sinceMs : undefined;
    const of = { of: updatedAt, commit: revision.commit, onto, method: review.mergeMethod, isFrozen };
    memory.attempt = { ...of, obstacle, unknownSinceMs, delay, until: clock.monotonic() + delay };
    return { requeueAfter: delay, reason: message };
  }
}

/** A pull request that other proposals share is merged by users: of an approved proposal this says so, once. */
export function reportUnmerged(
  { store, events }: Pick<MergingContext, 'events' | 'store'>,
  { object, evaluation, review, pull }: Pick<ReviewedProposal, 'evaluation' | 'object' | 'pull' | 'review'>,
): void {
  const { revision } = evaluation;
  const isWaiting = review.publishOn !== 'merge' && decisionOf(evaluation, revision.namespace) !== undefined;
  const message = `${pull.url} is not merged: other proposals share it, so that a user has to merge it`;
  const next = 'merge it on the host once its packages are approved, or set spec.review.publishOn to merge';
  store.repositoryOf(revision).noteNotMerged(revision.name, isWaiting ? { message, next } : undefined);
  if (isWaiting) events.record(object, 'Warning', 'NotMerged', `${message}; ${next}`, 'merge');
}

/** Decides by the present state, and records it where the decision is for another commit or old. Returns why it is refused. */
async function decide(
  { store, signal }: MergingContext,
  { object, evaluation: { revision } }: ReviewedProposal,
  decision: Approval,
  isFresh: boolean,
): Promise<string | undefined> {
  const { face, evidence, review, at } = decision;
  const request: RequestContext = {
    actor: approverOfRecord(decision),
    face: face as EntryPoint,
    ...{ reason: `approved at ${at}`, dryRun: isFresh, signal },
  };
  const update = {
    ...({ action: 'approve', expectedCommit: revision.commit, byMerge: true, mustSuffice: true } as const),
    ...(evidence === undefined ? {} : { evidence }),
    ...(review === undefined ? {} : { review }),
  };
  try {
    await store.update(keyText(keyOf(object)), update, request);
    return undefined;
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    return error.message;
  }
}

/** What these reviews have against the merge. */
async function objectionOf(
  context: MergingContext,
  proposal: ReviewedProposal,
  decision: Approval,
  reviews: readonly Review[],
): Promise<string | undefined> {
  const verdicts = await verdictsOf(context, proposal, reviews);
  const { changesRequested } = verdicts;
  if (changesRequested.length > 0) return changesRequestedBy(changesRequested);
  return withdrawnApproval(context, proposal, decision, verdicts);
}
