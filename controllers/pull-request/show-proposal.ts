import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import type { PollPace } from '../../src/forge/poll-pace.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { isRejected } from '../../src/package/kernel/revision-state.ts';
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
import { annotateProposal } from './annotate-proposal.ts';
import { memberOf } from './batch/batch-member.ts';
import type { Batches } from './batch/batches.ts';
import { type Place, placeOf } from './batch/place-of.ts';
import { checksOf } from './checks/checks.ts';
import { hostMergeRules } from './checks/host-merge-rules.ts';
import { closedBy, missingForMerge, noApprover } from './checks/unmet-publication.ts';
import {
  applyCommands,
  type CommandState,
  type CommandsContext,
  type CommentedProposal,
  updateReply,
} from './commands/apply-commands.ts';
import { applyEnd, type EndContext, isPublication } from './ending/apply-end.ts';
import { NOT_PUBLISHED_TOPIC } from './ending/describe-bypass.ts';
import { isOfProposal } from './ending/is-of-proposal.ts';
import { proposeRestored } from './ending/propose-again.ts';
import { reportEarlierMerge } from './ending/report-lost-merge.ts';
import { endSuperseded, ofSamePackage, supersedingOf, variantTargets } from './ending/supersede.ts';
import { otherProposals } from './ending/superseded-proposals.ts';
import { dependenciesOf, untilNextAttempt } from './merged/awaited-merge.ts';
import { policyForMerge, recordMergePublication } from './merged/merge-publication.ts';
import { type MergingContext, mergeApproved, reportUnmerged } from './merging/merge-approved.ts';
import { rebuildBranch, rebuildMerged } from './merging/rebuild-branch.ts';
import { linkNext, openPull, type WantedPull } from './opening/open-pull.ts';
import type { PullRequests } from './pull-requests.ts';
import { applyReviews, shownReviews } from './reviews/apply-reviews.ts';
import { ALL_MAY, mappedRights } from './reviews/mapped-rights.ts';
import { reviewsOf } from './reviews/read-reviews.ts';
import type { ReviewedProposal } from './reviews/reviewed-proposal.ts';
import { commitsWithContent } from './reviews/same-content.ts';
import { REREAD_MS, waitsByReview } from './reviews/withdraw-reviews.ts';
import type { MayApprove } from './rights.ts';
import { sharedComments } from './shared-comments.ts';
import { repositoryOf, type Shown, type ShownProposals, type ShownPull } from './shown-proposals.ts';
import { describeProposal, type Proposal } from './text/describe-proposal.ts';
import { readExplanation, readProposal } from './text/read-proposal.ts';
import { refusalIn } from './text/refusal.ts';
import { isPreparedIn, proposalId, proposalsIn } from './text/section.ts';
import { writeChecks, writePull } from './writing/write-pull.ts';

export interface ShowContext extends EndContext, MergingContext, CommandsContext {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'find' | 'list' | 'repositoryOf' | 'update'>;
  /** For the beginnings and ends of rules: a merge cannot be taken back. */
  readonly steady: Pick<Clock, 'now'>;
  /** As `mayApprove`, with answers that are known: for what is shown, and decides nothing. */
  readonly knownRights: MayApprove | undefined;
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
const READ_AGAIN: ReconcileResult = { requeueAfter: 1000, reason: 'the policy has to be read again' };
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
  if (!(await recordMergePublication(client, repository, review, signal))) return READ_AGAIN;
  const proposal = proposalId(revision.uid, record.steps);
  const known = shown.get(key);
  const place = await placeOf({ store, batches, signal }, { proposal, evaluation, review, known, pulls });
  const { branch, isShared, next } = place;
  let { pull } = place;
  if (pull !== undefined && pull.state !== 'open') {
    const read = await takeOverEnd(context, wanted, { ...place, proposal, known }, pull);
    if ('result' in read && (next === undefined || read.isNotPublished !== true)) return read.result;
    if (next !== undefined) pulls.passOver(branch);
    pull = next ?? ('pull' in read ? read.pull : pull);
  }
  if (pull?.state === 'open' && proposalsIn(pull.body).length > 0 && !isShared && isRejected(record)) {
    if (await proposeRestored(context, { object, evaluation, pulls }, pull)) return undefined;
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
  const annotations = isShared ? await annotateProposal(evaluation, renderer, signal) : [];
  const reportMember = (shownThere: Proposal) =>
    batches.report(
      memberOf(object, evaluation, { proposal, described: shownThere, annotations, left: place.left }),
      pulls,
    );
  if (isShared) {
    reportMember(described);
    // It is listed there soon, which wakes this controller.
    if (pull === undefined || !isOpen) return undefined;
  }
  // The new head wakes this controller.
  if (!isShared && !isOpen && (await rebuildMerged(context, evaluation))) return undefined;
  const content = { branch, proposals: [proposal], text: describeProposal(described), review };
  const before = isOpen ? undefined : pull;
  if (pull === undefined || !isOpen) pull = await openPull(context, [{ object, revision }], pulls, content);
  // Not before: what is neither there nor in the shared one, which ends without it, would count as rejected.
  if (!isShared) batches.withdraw(key, proposal);
  if (before !== undefined) {
    const reporting = { client, events, forge: pulls.forge, signal };
    const mayPublish = async () =>
      ((await policyForMerge(client, repository, review, before, signal)) ?? review).publishOn === 'merge';
    await reportEarlierMerge(reporting, repository, { object, revision, record }, before, mayPublish);
    await linkNext(context, before, pull, pulls.forge);
  }
  // The branch of the host follows it.
  if (!isShared && pull.head.commit !== revision.commit) pulls.notePush(branch);
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
  if (described.rights !== undefined) entry.rights = described.rights;
  const { reviews } = shownPull;
  const isOld = reviews !== undefined && clock.monotonic() - reviews.readMs >= REREAD_MS;
  if (isOld && !pulls.forge.batchesReads && waitsByReview(evaluation)) delete shownPull.reviews;
  const read = await reviewsOf(shownPull, pull, clock.monotonic(), signal);
  const proposed = { object, evaluation, review, pull, forge: pulls.forge, ...read };
  repository.refusals.noteEnd(revision.name, undefined);
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
    // By what `applyReviews` has found.
    reportMember({ ...described, ...shownReviews(repository, revision.name) });
    if (shownPull.awaitsMerge === true) batches.wake(repositoryOf(key));
    reportUnmerged(context, proposed);
    return undefined;
  }
  // From one that Sluice has written, a user has removed the section.
  if (proposalsIn(pull.body).length === 0 && shownPull.text === undefined)
    events.record(object, 'Normal', 'PullRequestAdopted', `it is reviewed in ${pull.url}`, 'opened');
  return writeAndMerge(context, commented, { explanation, described, content, ofPackage }, shownPull);
}

/**
 * Takes over how the pull request of a proposal has ended, by its state as it is read again: what a user decided has an effect. Returns the pull
 * request as it is now where that was the end of another proposal, or a user has opened it again. `isNotPublished`: it was reported why its merge
 * does not publish the proposal.
 */
async function takeOverEnd(
  context: ShowContext,
  { object, evaluation, review, pulls }: WantedProposal,
  { proposal, known, branch, isShared }: Place & { readonly proposal: string; readonly known: Shown | undefined },
  ended: PullRequest,
): Promise<
  { readonly pull: PullRequest } | { readonly result: ReconcileResult | undefined; readonly isNotPublished?: boolean }
> {
  const { client, store, clock, shown, signal } = context;
  const { revision } = evaluation;
  const repository = store.repositoryOf(revision);
  const dependencies = dependenciesOf({ pull: ended, evaluation, index: repository.index });
  const waitMs = untilNextAttempt(known?.awaited, dependencies, clock.monotonic());
  if (waitMs > 0) return { result: { requeueAfter: waitMs, reason: 'the main branch has to be read' } };
  const pull = await pulls.forge.get(ended.number, signal);
  pulls.note(pull);
  const isOfIt = isShared || isOfProposal(pull, { proposal, evaluation, known });
  if (pull.state === 'open' || !isOfIt) return { pull };
  const entry = watch(context, keyOf(object), proposal, shown.pullOf(pulls, branch, pull));
  entry.last = { revision, review };
  // An earlier process may have reported that it could not be published: that is corrected once it is.
  const reported =
    known === undefined && pull.state === 'merged' && !isShared
      ? await pulls.forge.findComment(pull.number, NOT_PUBLISHED_TOPIC, signal)
      : undefined;
  if (reported !== undefined) entry.isCommented = true;
  const read = await reviewsOf(entry.pull, pull, clock.monotonic(), signal);
  const counted = await policyForMerge(client, repository, review, pull, signal);
  if (counted === undefined) return { result: READ_AGAIN };
  noteQueue(store, pulls, revision, pull);
  const isOwnHead = entry.pull.heads.has(pull.head.commit);
  const merged = { object, evaluation, review: counted, pull, isOwnHead, ...read, forge: pulls.forge };
  // What reviewers request still stands in the way of an approval.
  if (pull.state === 'merged' && !isPublication(merged))
    await applyReviews(context, { ...merged, review: { ...review, publishOn: 'approval' } });
  const result = await applyEnd(context, merged, entry);
  const isOutside = pull.state === 'merged' && !isPublication(merged);
  if (isOutside) entry.pull.outside = new Set([...(entry.pull.outside ?? []), keyText(keyOf(object))]);
  // One that is late, or waits for earlier ones, is still to be published.
  const isReported = entry.notPublished !== undefined && result !== undefined;
  return { result, isNotPublished: !isPublication(merged) || isReported };
}

/** What the pull request of a proposal shows of it. `pull`: as it was last read; a new one has no reviews. */
async function readShown(
  context: ShowContext,
  { object, evaluation, review, pulls, unmet }: WantedProposal,
  branch: string,
  pull: PullRequest | undefined,
): Promise<{ readonly explanation: Explanation; readonly described: Proposal }> {
  const { client, store, events, clock, shown, knownRights, signal } = context;
  const { revision } = evaluation;
  const explanation = await readExplanation(client, object, signal);
  const refusal = refusalIn(explanation.reasons);
  if (refusal === undefined) events.forgetTopic(keyOf(object), 'refusal');
  else events.record(object, 'Warning', refusal.reason, refusal.message, 'refusal');
  const reviewsNow = async () =>
    pull?.state === 'open'
      ? (await reviewsOf(shown.pullOf(pulls, branch, pull), pull, clock.monotonic(), signal)).reviews
      : [];
  const rights =
    review.publishOn === 'approval' ? ALL_MAY : await mappedRights({ knownRights, signal }, review, keyOf(object));
  const missing =
    review.publishOn === 'merge'
      ? await missingForMerge(
          { ...context, forge: context.teamsOf?.(pulls.forge) ?? pulls.forge },
          { object, evaluation, review },
          { unsureMerger: pulls.unsureMerger, rights, pull, read: reviewsNow },
        )
      : { rules: noApprover({ evaluation, review }, rights), progress: undefined };
  const { progress } = missing;
  const counted = progress && `by the reviews of its pull request: ${progress}`;
  const repository = store.repositoryOf(revision);
  repository.refusals.noteReviews(revision.name, 'ReviewsCounted', counted);
  const reviews = shownReviews(repository, revision.name);
  const about = { explanation, review, rights, rules: [...unmet, ...missing.rules], progress, ...reviews };
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
  const reviews = shownReviews(store.repositoryOf(revision), revision.name);
  await writePull(context, object, entry, pull, { ...content, text: describeProposal({ ...described, ...reviews }) });
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
