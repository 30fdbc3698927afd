import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import type { PollPace } from '../../src/forge/poll-pace.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { Explanation } from '../../src/package/model/revision/explanation.ts';
import type { PackageRevision as Revision } from '../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import type { SyncRequests } from '../repository/sync-requests.ts';
import { memberOf } from './batch/batch-member.ts';
import type { Batches } from './batch/batches.ts';
import { type Place, placeOf } from './batch/place-of.ts';
import { CONFLICT_REASON, checksOf } from './checks/checks.ts';
import { hostMergeRules } from './checks/host-merge-rules.ts';
import { NOTHING_MISSING } from './checks/missing-until-merge.ts';
import { closedBy, missingForMerge } from './checks/unmet-publication.ts';
import {
  applyCommands,
  type CommandState,
  type CommandsContext,
  type CommentedProposal,
  updateReply,
} from './commands/apply-commands.ts';
import { sharedComments } from './commands/shared-comments.ts';
import { applyEnd, type EndContext, isOfProposal, isPublication, isRejected } from './ending/apply-end.ts';
import { dependenciesOf, untilNextAttempt } from './ending/awaited-merge.ts';
import { endSuperseded, ofSamePackage, supersedingOf, variantTargets } from './ending/supersede.ts';
import { otherProposals } from './ending/superseded-proposals.ts';
import { annotateProposal } from './findings/annotate-proposal.ts';
import { type MergingContext, mergeApproved, reportUnmerged } from './merging/merge-approved.ts';
import { policyForMerge, recordMergePublication } from './merging/merge-publication.ts';
import { rebuildBranch } from './merging/rebuild-branch.ts';
import { linkNext, openPull, type WantedPull } from './opening/open-pull.ts';
import type { PullRequests } from './pull-requests.ts';
import { applyReviews, uncountedOf } from './reviews/apply-reviews.ts';
import { reviewsOf } from './reviews/read-reviews.ts';
import type { ReviewedProposal } from './reviews/reviewed-proposal.ts';
import { commitsWithContent } from './reviews/same-content.ts';
import { REREAD_MS, waitsByReview } from './reviews/withdraw-reviews.ts';
import { repositoryOf, type Shown, type ShownProposals, type ShownPull } from './shown-proposals.ts';
import { describeProposal, type Proposal } from './text/describe-proposal.ts';
import { readExplanation, readProposal } from './text/read-proposal.ts';
import { isPreparedIn, proposalId, proposalsIn } from './text/section.ts';
import { writeChecks, writePull } from './writing/write-pull.ts';

export interface ShowContext extends EndContext, MergingContext, CommandsContext {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'list' | 'repositoryOf' | 'update'>;
  /** For the beginnings and ends of rules: a merge cannot be taken back. */
  readonly steady: Pick<Clock, 'now'>;
  readonly requests: Pick<SyncRequests, 'addOwn' | 'isAsWritten'> | undefined;
  readonly renderer: Renderer | undefined;
  readonly shown: ShownProposals;
  readonly batches: Batches;
  readonly pace: PollPace;
  enqueue(key: ObjectKey): void;
}

/** A proposal that is to be shown on a host. */
export interface WantedProposal {
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  /** Those of its repository. */
  readonly pulls: PullRequests;
  /** The rules that keep it from being published now. */
  readonly unmet: readonly BlockingRule[];
}

/** Until a policy is read again of which was recorded since when merges publish. */
const BEGIN_MS = 1000;
/** A host that is loaded needs some seconds to open a pull request. */
const JUST_OPENED_MS = 5000;

/** Brings the pull request of a proposal up to date, and takes over what was decided there. */
export async function showProposal(context: ShowContext, wanted: WantedProposal): Promise<ReconcileResult | undefined> {
  const { client, store, events, clock, shown, batches, renderer, signal } = context;
  const { object, evaluation, review, pulls } = wanted;
  const { revision, record } = evaluation;
  const key = keyOf(object);
  const repository = store.repositoryOf(revision);
  // Before the first merge, and also when merges end to publish.
  await recordMergePublication(client, repository, review, signal);
  const proposal = proposalId(revision.uid, record.steps);
  const known = shown.get(key);
  const place = await placeOf({ store, batches, signal }, { proposal, evaluation, review, known, pulls });
  const { branch, isShared } = place;
  let { pull } = place;
  if (pull !== undefined && pull.state !== 'open') {
    const read = await takeOverEnd(context, wanted, { ...place, proposal, known }, pull);
    if ('result' in read) return read.result;
    pull = read.pull;
  }
  const ofPackage = ofSamePackage(store, revision);
  const targets = await variantTargets(client, revision, ofPackage, signal);
  const superseding = supersedingOf(revision, ofPackage, targets);
  const sharedOf = (other: Revision) =>
    batches.pullOf(pulls, store.repositoryOf(other), proposalId(other.uid, other.record?.steps ?? []), signal);
  const own = { pull: isShared ? undefined : pull, pulls, sharedOf };
  if (superseding !== undefined && (await endSuperseded(context, object, superseding, own))) return undefined;
  const hostRules = isShared ? [] : await hostMergeRules(repository, evaluation, review);
  const about = { ...wanted, unmet: [...hostRules, ...wanted.unmet] };
  const { explanation, described } = await readShown(context, about, branch, pull);
  const isOpen = pull?.state === 'open';
  if (isShared) {
    const annotations = await annotateProposal(evaluation, renderer, signal);
    batches.report(memberOf(object, evaluation, { proposal, described, annotations, left: place.left }), pulls);
    // It is listed there soon, which wakes this controller.
    if (pull === undefined || !isOpen) return undefined;
  }
  const content = { branch, proposals: [proposal], text: describeProposal(described), review };
  const before = isOpen ? undefined : pull;
  if (pull === undefined || !isOpen) pull = await openPull(context, [{ object, revision }], pulls, content);
  // Not before: what is neither there nor in the shared one, which ends without it, would count as rejected.
  if (!isShared) batches.withdraw(key, proposal);
  if (before !== undefined) await linkNext(context, before, pull, pulls.forge);
  // The branch of the host follows it.
  if (!isShared && pull.head.commit !== revision.commit) pulls.notePush(branch);
  const isKnown = isOpen && proposalsIn(pull.body).length > 0;
  // What it supersedes has waited for its pull request.
  if (known === undefined) for (const other of otherProposals(store, revision)) context.enqueue(other);
  const shownPull = shown.pullOf(pulls, branch, pull);
  shownPull.isPrepared ??= isPreparedIn(pull.body);
  // One that was just opened has neither comments nor checks, and no reviews but those that an earlier one of the branch has.
  const isNew = !isOpen && isUntouched(pull);
  if (isNew) {
    shownPull.hasNoChecks = true;
    const hasEarlier = pulls.earlierOf(branch).some((one) => one !== shownPull.number);
    if (!hasEarlier) shownPull.reviews = { of: pull, list: [], readMs: clock.monotonic() };
  }
  const entry = watch(context, key, proposal, shownPull, isNew ? { of: pull } : {});
  entry.last = { revision, review };
  const { reviews } = shownPull;
  const isOld = reviews !== undefined && clock.monotonic() - reviews.readMs >= REREAD_MS;
  if (isOld && !pulls.forge.batchesReads && waitsByReview(evaluation)) delete shownPull.reviews;
  const read = await reviewsOf(shownPull, pull, clock.monotonic(), signal);
  const proposed = { object, evaluation, review, pull, forge: pulls.forge, ...read };
  noteQueue(store, pulls, revision, pull);
  if (await applyReviews(context, proposed)) {
    pulls.notePush(branch);
    return undefined;
  }
  const isAt = async (commit: string) => (await commitsWithContent(repository.git, evaluation, [commit])).size > 0;
  // While users have pushed to the branch of a batch, it does not show what is proposed.
  if (
    (!isShared || shown.isOwnHead(entry, pull.head.commit)) &&
    entry.seen?.content !== evaluation.content.content &&
    (await isAt(pull.head.commit))
  )
    shown.noteSeen(entry, { content: evaluation.content.content, at: pull.updatedAt });
  const shared = isShared ? sharedComments(shownPull, pull, key, signal) : undefined;
  const commented = { ...proposed, repository: repositoryOf(key), seen: entry.seen, state: entry.commands, shared };
  const executed = await applyCommands(context, commented);
  if (executed !== undefined) {
    if ('requeueAfter' in executed) return executed;
    // Whatever the command was, the next reconciliation evaluates all of it again.
    for (const memory of ['text', 'checks', 'reviews'] as const) delete shownPull[memory];
    return undefined;
  }
  if (isShared) {
    if (shownPull.awaitsMerge === true) batches.wake(repositoryOf(key));
    reportUnmerged(context, proposed);
    return undefined;
  }
  if (proposalsIn(pull.body).length === 0)
    events.record(object, 'Normal', 'PullRequestAdopted', `it is reviewed in ${pull.url}`, 'opened');
  if (isKnown && isRejected(record)) {
    const message = `${pull.url} was opened again, so that it is proposed again; approvals from before do not count`;
    events.record(object, 'Normal', 'PullRequestReopened', message, 'opened');
  }
  return writeAndMerge(context, commented, { explanation, described, content, ofPackage }, shownPull);
}

/**
 * Takes over how the pull request of a proposal has ended, by its state as it is read again: what a user decided has an effect. Returns the pull
 * request as it is now where that was the end of another proposal, or a user has opened it again.
 */
async function takeOverEnd(
  context: ShowContext,
  { object, evaluation, review, pulls }: WantedProposal,
  { proposal, known, branch, isShared }: Place & { readonly proposal: string; readonly known: Shown | undefined },
  ended: PullRequest,
): Promise<{ readonly pull: PullRequest } | { readonly result: ReconcileResult | undefined }> {
  const { client, store, clock, shown, signal } = context;
  const { revision } = evaluation;
  const repository = store.repositoryOf(revision);
  const { mainHead } = repository.index;
  const dependencies = dependenciesOf({ pull: ended, evaluation, mainHead });
  const waitMs = untilNextAttempt(known?.awaited, dependencies, clock.monotonic());
  if (waitMs > 0) return { result: { requeueAfter: waitMs, reason: 'the main branch has to be read' } };
  const pull = await pulls.forge.get(ended.number, signal);
  pulls.note(pull);
  const isOfIt = isShared || isOfProposal(pull, { proposal, evaluation, known });
  if (pull.state === 'open' || !isOfIt) return { pull };
  const entry = watch(context, keyOf(object), proposal, shown.pullOf(pulls, branch, pull));
  entry.last = { revision, review };
  const read = await reviewsOf(entry.pull, pull, clock.monotonic(), signal);
  const counted = await policyForMerge(client, repository, review, pull, signal);
  if (counted === undefined) return { result: { requeueAfter: BEGIN_MS, reason: 'the policy has to be read again' } };
  noteQueue(store, pulls, revision, pull);
  const merged = { object, evaluation, review: counted, pull, ...read, forge: pulls.forge };
  // What reviewers request still stands in the way of an approval.
  if (pull.state === 'merged' && !isPublication(merged))
    await applyReviews(context, { ...merged, review: { ...review, publishOn: 'approval' } });
  return { result: await applyEnd(context, merged, entry) };
}

/** What the pull request of a proposal shows of it. `pull`: as it was last read; a new one has no reviews. */
async function readShown(
  context: ShowContext,
  { object, evaluation, review, pulls, unmet }: WantedProposal,
  branch: string,
  pull: PullRequest | undefined,
): Promise<{ readonly explanation: Explanation; readonly described: Proposal }> {
  const { client, store, events, clock, shown, signal } = context;
  const { revision } = evaluation;
  const explanation = await readExplanation(client, object, signal);
  const conflict = explanation.reasons.find(({ reason }) => reason === CONFLICT_REASON);
  if (conflict === undefined) events.forgetTopic(keyOf(object), 'conflict');
  else events.record(object, 'Warning', CONFLICT_REASON, conflict.message, 'conflict');
  const reviewsNow = async () =>
    pull?.state === 'open'
      ? (await reviewsOf(shown.pullOf(pulls, branch, pull), pull, clock.monotonic(), signal)).reviews
      : [];
  const missing =
    review.publishOn === 'merge'
      ? await missingForMerge(
          { ...context, forge: context.teamsOf?.(pulls.forge) ?? pulls.forge },
          { object, evaluation, review },
          reviewsNow,
        )
      : NOTHING_MISSING;
  const { progress } = missing;
  const counted = progress && `by the reviews of its pull request: ${progress}`;
  const repository = store.repositoryOf(revision);
  repository.refusals.noteReviews(revision.name, 'ReviewsCounted', counted);
  const uncounted = uncountedOf(repository, revision.name);
  const about = { explanation, review, rules: [...unmet, ...missing.rules], progress, uncounted };
  return { explanation, described: await readProposal({ client, store }, object, evaluation, about, signal) };
}

/** Writes the checks and the text of a pull request that a proposal has for itself, and has the host merge it once that is due. */
async function writeAndMerge(
  context: ShowContext,
  proposed: ReviewedProposal & CommentedProposal,
  {
    explanation,
    described,
    content,
    ofPackage,
  }: {
    readonly explanation: Explanation;
    readonly described: Proposal;
    readonly content: WantedPull;
    readonly ofPackage: readonly Revision[];
  },
  entry: ShownPull,
): Promise<ReconcileResult | undefined> {
  const { store, clock, steady, renderer, signal } = context;
  const { object, evaluation, review, pull } = proposed;
  const { revision } = evaluation;
  const annotations = await annotateProposal(evaluation, renderer, signal);
  const checks = checksOf(described, review.gateChecks, pull.url, annotations);
  entry.hasForeignFiles = described.rules.some(({ rule }) => rule === 'ForeignFiles');
  await writeChecks(context, entry, revision.commit, checks, [revision]);
  await updateReply(context, proposed, explanation);
  // By what `applyReviews` has found.
  const uncounted = uncountedOf(store.repositoryOf(revision), revision.name);
  await writePull(context, object, entry, pull, { ...content, text: describeProposal({ ...described, uncounted }) });
  const combines = described.rules.filter(({ rule }) => rule === 'PublishedSince');
  const others = { ...described, rules: described.rules.filter((one) => !combines.includes(one)) };
  const isCombining = combines.length > 0;
  const judged = isCombining ? checksOf(others, [], pull.url) : checks;
  const rebuilt = await rebuildBranch(context, evaluation, review, { pull, checks: judged, entry, isCombining });
  if (rebuilt === 'rebuilt') return undefined;
  // Last of all: the checks of the commit may be required for it.
  // By a clock that is ahead, or one that is corrected, a rule would permit it.
  const [closed] = [steady, clock].flatMap((by) => closedBy(evaluation, ofPackage, by.now()) ?? []);
  return (await mergeApproved(context, proposed, entry.pulls, closed)) ?? rebuilt;
}

function watch(
  { shown, pace, enqueue }: Pick<ShowContext, 'shown' | 'pace' | 'enqueue'>,
  key: ObjectKey,
  proposal: string,
  pull: ShownPull,
  commands: CommandState = {},
): Shown {
  const before = shown.get(key);
  if (before?.proposal === proposal && before.pull === pull) return before;
  const entry = { key, proposal, pull, commands };
  shown.set(entry);
  pace.noteOpened(keyText(repositoryOf(key)));
  enqueue(repositoryOf(key));
  return entry;
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
