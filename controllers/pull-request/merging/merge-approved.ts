import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Review } from '../../../src/forge/forge.ts';
import type { MergeObstacle, MergeOutcome } from '../../../src/forge/forge-merging.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { type Approval, approvalsIn, type Decision } from '../../../src/package/model/record/record.ts';
import { approverOfRecord } from '../../../src/package/model/record/withdrawn-approval.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import { decisionOf, decisionsMade, mergesOnHost } from '../../../src/package/store/approve-by-merge.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EntryPoint, RequestContext } from '../../../src/resource/object/request-context.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';
import { combinesPackages } from '../checks/host-merge-rules.ts';
import type { PullRequests } from '../pull-requests.ts';
import { verdictsOf } from '../reviews/apply-reviews.ts';
import type { ReviewContext, ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import { changesRequestedBy } from '../reviews/verdicts.ts';
import { repositoryOf } from '../shown-proposals.ts';
import { commitLine, plainLine } from '../text/quote.ts';
import { type CountedDecision, countedDecision, NOT_DECIDED } from './counted-decision.ts';
import { dequeue, STAYS_QUEUED } from './dequeue.ts';
import type { MergeAttempts, MergeSubject, UnmergedReason } from './merge-attempts.ts';
import { rebuildOnMain, UNKNOWN_MS } from './rebuild-branch.ts';

export interface MergingContext extends Omit<ReviewContext, 'store'> {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'repositoryOf' | 'update'>;
  readonly clock: Clock;
  /** By revision. */
  readonly attempts: MergeAttempts;
  readonly requests: Pick<SyncRequests, 'addOwn'> | undefined;
}

/** A decision is recorded again before a merge once it is so old, in milliseconds; the kernel counts it for twice as long. */
const FRESH_MS = 1_800_000;
/** For so long after the approval: each record is a push, and the host may refuse the merge for weeks. Later merges are judged when they are read. */
const RECORDED_MS = 7_200_000;
/** Between two looks at what the merge queue of the host has. */
const QUEUED_RETRY_MS = 300_000;
/** Until what the host merged, or has not read yet, is looked at again. */
const SOON_MS = 1000;
const MAX_TITLE_CHARACTERS = 250;

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
 *
 * What Sluice would not have merged now, by rules that close its publication (`closed`), gates, approvals, reviews or the policy, leaves the merge
 * queue if Sluice has put it there.
 */
export async function mergeApproved(
  context: MergingContext,
  proposal: ReviewedProposal,
  pulls: PullRequests,
  closed: string | undefined,
): Promise<ReconcileResult | undefined> {
  const { store, events, clock, attempts, requests, signal } = context;
  const { object, evaluation, review, pull } = proposal;
  const { revision } = evaluation;
  const key = keyText(keyOf(object));
  const made = decisionsMade(evaluation, revision.namespace);
  const decisions = made.filter(({ face }) => mergesOnHost(review, face));
  const repository = store.repositoryOf(revision);
  if (!pulls.queued.has(pull.number)) attempts.noteQueued(key, undefined);
  if (decisions.length === 0) {
    const why =
      made.length === 0
        ? NOT_DECIDED
        : `policy ${review.policy} leaves the merge to users (spec.review.publishOn: merge)`;
    const isQueued = pulls.queued.has(pull.number) && attempts.mayHaveQueued(key, pull.number);
    const stays = isQueued ? await leaveQueue(why, true) : undefined;
    if (stays !== undefined) return stays;
    attempts.forgetUnmerged(key);
    repository.refusals.noteNotMerged(revision.name, undefined);
    return undefined;
  }
  let subject: MergeSubject = {
    ...{ number: pull.number, head: revision.commit, method: review.mergeMethod, closedBy: closed },
    // The section in its body may have been written since.
    updatedAt: ((await pulls.ofBranch(pull.head.branch, signal)) ?? pull).updatedAt,
    // Where heads have to be up to date, the host does not report that one is not any more.
    ...(pulls.upToDate.isRequired ? { base: repository.index.mainHead } : {}),
  };
  const obstacle = await attempts.obstacleTo(key, subject, () => pulls.merging.mergeMethods(pull.base.branch, signal));
  const paused =
    obstacle === undefined ? undefined : { requeueAfter: attempts.dueMs(key) ?? SOON_MS, reason: obstacle };
  // The host may merge what is in its queue at any time.
  if (paused !== undefined && !pulls.queued.has(pull.number)) return paused;

  if (closed !== undefined) return holdBack(closed);
  // A decision that no longer stands must not be made again.
  const { decision, problem } = await judge(context, proposal, decisions, proposal.reviews);
  if (decision === undefined) return holdBack(problem);
  const isRecorded = decision.mergeOf === revision.commit && !isDecidedAgain(decision, clock.now());
  const refusal = await decide(context, proposal, decision, isRecorded);
  if (refusal !== undefined) return holdBack(refusal);
  // The record has changed, which wakes this controller again.
  if (!isRecorded) return undefined;
  if (paused !== undefined) return paused;

  if (isDecidedElsewhere(repository, revision)) {
    // The host may have merged another revision of the package just now.
    const { mainHead } = repository.index;
    await repository.catchUp(signal, 'branches');
    if (repository.index.mainHead !== mainHead)
      return { requeueAfter: SOON_MS, reason: 'another revision of the package was merged' };
  }
  if (await combinesPackages(repository, evaluation)) {
    const reason = 'another revision of the package was published since its branch was made';
    const stays = pulls.queued.has(pull.number) ? await leaveQueue(reason, false) : undefined;
    if (stays !== undefined) return stays;
    // As a push would publish it. The new head wakes this controller, and is decided on again.
    return (await rebuildOnMain(context, evaluation)) ? undefined : wait({ text: reason, obstacle: 'behind' });
  }
  const now = await pulls.forge.get(pull.number, signal);
  if (now.state !== 'open' || now.base.branch !== pull.base.branch || now.head.branch !== pull.head.branch) {
    pulls.note(now);
    return { requeueAfter: SOON_MS, reason: 'the pull request has changed' };
  }
  if (now.head.commit !== revision.commit)
    return { requeueAfter: SOON_MS, reason: 'the host has not read the branch yet' };
  const last = await judge(context, proposal, [decision], await proposal.readReviews());
  if (last.decision === undefined) return holdBack(last.problem);
  const title = commitLine(pull.title, MAX_TITLE_CHARACTERS);
  const message = commitLine(`Package revision ${revision.name}, approved by ${decision.subject} at ${decision.at}`);
  const wanted = { headCommit: revision.commit, method: review.mergeMethod, title, message };
  let outcome: MergeOutcome;
  try {
    outcome = await pulls.merging.merge(pull.number, wanted, signal);
  } catch (error) {
    if (isSluiceError(error, 'Conflict')) return { requeueAfter: SOON_MS, reason: 'the branch has changed' };
    // It may be in the queue all the same, which the next read of it shows.
    if (pulls.forge.mergeQueue !== undefined && !isPermanent(error)) takeOverQueue(true);
    if (isSluiceError(error))
      repository.refusals.noteNotMerged(revision.name, { message: `${pull.url} is not merged: ${messageOf(error)}` });
    throw error;
  }
  if (outcome.state === 'refused') {
    const { obstacle: by, message: words } = outcome;
    takeOverQueue(false);
    if (by === 'behind') {
      pulls.upToDate.noteBehind();
      subject = { ...subject, base: repository.index.mainHead };
    }
    // Some hosts state no more of a conflict.
    const isUnknownForLong = by === 'unknown' && attempts.unknownMs(key, subject) >= UNKNOWN_MS;
    if (by === 'behind' || by === 'conflict' || isUnknownForLong) {
      // The new head wakes this controller, and is decided on again.
      if (await rebuildOnMain(context, evaluation)) return undefined;
      // The main branch may have moved on the host alone.
      requests?.addOwn(repositoryOf(keyOf(object)), 'branches');
    }
    return wait({ text: plainLine(words), obstacle: by });
  }
  if (outcome.state === 'queued') {
    takeOverQueue(true);
    return wait({ text: 'it is in the merge queue of the host', obstacle: undefined, firstMs: QUEUED_RETRY_MS });
  }
  repository.refusals.noteNotMerged(revision.name, undefined);
  attempts.forget(key);
  pulls.note(await pulls.forge.get(pull.number, signal));
  requests?.addOwn(repositoryOf(keyOf(object)), 'branches');
  return { requeueAfter: SOON_MS, reason: 'the merge has to be read' };

  function takeOverQueue(isQueued: boolean): void {
    pulls.queued.note(pull.number, isQueued);
    attempts.noteQueued(key, isQueued ? pull.number : undefined);
    repository.refusals.noteQueued(revision.name, isQueued ? pull.url : undefined);
  }

  async function holdBack(reason: string): Promise<ReconcileResult> {
    const stays = pulls.queued.has(pull.number) ? await leaveQueue(reason, false) : undefined;
    return stays ?? wait({ text: reason, obstacle: undefined });
  }

  async function leaveQueue(reason: string, isUpToUsers: boolean): Promise<ReconcileResult | undefined> {
    const remove = async () => pulls.merging.dequeue(pull.number, signal);
    const outcome = await dequeue(context, { object, url: pull.url, reason, isUpToUsers, remove });
    if (outcome === 'left') takeOverQueue(false);
    return outcome === 'stays' ? STAYS_QUEUED : undefined;
  }

  function wait(why: UnmergedReason): ReconcileResult {
    const next = why.obstacle === undefined ? undefined : NEXT[why.obstacle];
    const message = `${pull.url} is not merged: ${why.text}`;
    events.record(object, 'Warning', 'NotMerged', next === undefined ? message : `${message}; ${next}`, 'merge');
    repository.refusals.noteNotMerged(revision.name, {
      message,
      ...(next === undefined ? {} : { next: `${next}: ${pull.url}` }),
    });
    return { requeueAfter: attempts.noteUnmerged(key, subject, why), reason: message };
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
  store.repositoryOf(revision).refusals.noteNotMerged(revision.name, isWaiting ? { message, next } : undefined);
  if (isWaiting) events.record(object, 'Warning', 'NotMerged', `${message}; ${next}`, 'merge');
}

/** Whether the host is to merge another revision of the package too. */
function isDecidedElsewhere(
  { index }: Pick<PackageRepository, 'index'>,
  { name, key, namespace }: PackageRevision,
): boolean {
  return index
    .ofPackage(key.package)
    .some(
      ({ name: other, lifecycle, record = {} }) =>
        other !== name &&
        lifecycle === 'Proposed' &&
        approvalsIn(record, namespace).some(({ mergeOf }) => mergeOf !== undefined),
    );
}

/** Whether the decision is to be recorded again, for a merge at this time. */
function isDecidedAgain({ at, decidedAt = at }: Approval, now: number): boolean {
  const age = now - Date.parse(decidedAt);
  if (age < 0) return true;
  return age >= FRESH_MS && Date.parse(decidedAt) - Date.parse(at) < RECORDED_MS;
}

/** Decides by the present state, and records it where it is not recorded for this commit, or is to be recorded again. Returns why it is refused. */
async function decide(
  { store, signal }: MergingContext,
  { object, evaluation: { revision } }: ReviewedProposal,
  decision: Approval,
  isRecorded: boolean,
): Promise<string | undefined> {
  const { face, evidence, review, at } = decision;
  const request: RequestContext = {
    actor: approverOfRecord(decision),
    face: face as EntryPoint,
    ...{ reason: `approved at ${at}`, dryRun: isRecorded, signal },
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

/** The decision by which it may be merged with these reviews, or what they have against it. */
async function judge(
  context: MergingContext,
  proposal: ReviewedProposal,
  decisions: readonly Decision[],
  reviews: readonly Review[],
): Promise<CountedDecision> {
  const verdicts = await verdictsOf(context, proposal, reviews);
  const { changesRequested } = verdicts;
  if (changesRequested.length > 0) return { problem: changesRequestedBy(changesRequested) };
  return countedDecision(context, proposal, decisions, verdicts);
}
