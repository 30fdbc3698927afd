import { isDeepStrictEqual } from 'node:util';
import type { Review } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { listed } from '../../../src/foundation/text/counted.ts';
import { type QuorumStatus, quorumProblem } from '../../../src/package/kernel/approvals.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import { isDecision, type RevisionRecord } from '../../../src/package/model/record/record.ts';
import { refusalOf } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { recordedApprovals } from '../../../src/package/store/unmet-rules.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import { plainLine } from '../text/quote.ts';
import { noRightText } from './approvals-at-merge.ts';
import { revisionApprover } from './approver-at.ts';
import { commitsThatCount, ofProposal } from './reviewed-package.ts';
import type { ReviewContext, ReviewedProposal } from './reviewed-proposal.ts';
import { approvedCommits, changesRequestedBy, evaluateReviews, type ReviewVerdicts } from './verdicts.ts';
import { endedApprovals, withdrawReviews } from './withdraw-reviews.ts';

/**
 * Takes over what reviewers decided: requested changes close the gate `sluice.dev/Reviewed`, and approving reviews approve where the policy
 * says so, once the gates are open and there are as many as are needed. Until then none is recorded; one that is recorded and waits for a rule
 * is withdrawn with its review. Returns whether it has changed the revision, which is reconciled again then.
 */
export async function applyReviews(context: ReviewContext, proposal: ReviewedProposal): Promise<boolean> {
  const notes: ReviewNotes = { unread: new Set<string>(), uncounted: new Set<string>() };
  const isChanged = await applyVerdicts(context, proposal, notes);
  const { revision } = proposal.evaluation;
  const repository = context.store.repositoryOf(revision);
  const textOf = (lines: ReadonlySet<string>) => (isChanged || lines.size === 0 ? undefined : [...lines].join('; '));
  repository.refusals.noteUnreadTeams(revision.name, textOf(notes.unread));
  repository.refusals.noteReviews(
    revision.name,
    'ReviewNotCounted',
    textOf(new Set([...notes.uncounted].slice(-MAX_UNCOUNTED))),
  );
  repository.refusals.noteReviews(revision.name, 'ApprovedByReview', isChanged ? undefined : notes.approved);
  return isChanged;
}

/** Users and gates that a message names. */
const MAX_NAMED = 5;
/** The last reviews that "sluice why" and the pull request explain. */
const MAX_UNCOUNTED = 5;

interface ReviewNotes {
  /** The reviewers whose teams cannot be read, with the reason. */
  readonly unread: Set<string>;
  /** Approving reviews that do not count, with the reason. */
  readonly uncounted: Set<string>;
  /** The reviews that approve it, and for what it waits. */
  approved?: string;
}

async function applyVerdicts(context: ReviewContext, proposal: ReviewedProposal, notes: ReviewNotes): Promise<boolean> {
  const { events } = context;
  const { object, evaluation, review } = proposal;
  if (await withdrawReviews(context, proposal)) return true;
  const { approvals, changesRequested, uncounted } = await verdictsOf(context, proposal, proposal.reviews);
  if (await reportChanges(context, proposal, changesRequested)) return true;
  if (review.publishOn === 'approval') return false;
  for (const { review: one, reason } of uncounted) {
    const message = `the review ${one.url} of ${plainLine(one.author)} does not count: ${reason}`;
    if (review.publishOn === 'review')
      events.record(object, 'Normal', 'ReviewNotCounted', message, `review of ${one.author}`);
    notes.uncounted.add(message);
  }
  const isByMerge = review.publishOn === 'merge';
  const found = await approvingReviews(context, proposal, approvals, notes);
  const closed =
    evaluation.policy.enforcement === 'enforce' ? evaluation.gates.filter(({ state }) => state !== 'Open') : [];
  // Its review does not count for the package that takes its place.
  const isRefused = refusalOf(evaluation) !== undefined;
  if (found.isEnough && !isRefused && (isByMerge || closed.length > 0))
    notes.approved = approvedText(
      found.candidates,
      closed.map(({ type }) => type),
      isByMerge,
    );
  if (isByMerge || changesRequested.length > 0 || !found.isEnough || closed.length > 0) return false;
  return approve(context, proposal, found.candidates);
}

/** Which reviews approve a proposal, and for what it waits. */
function approvedText(candidates: readonly Candidate[], closed: readonly string[], isByMerge: boolean): string {
  const by = candidates.map(({ actor, review }) => `${plainLine(review.author)} (${actor.name})`);
  const what =
    by.length === 1 ? `the review of ${by[0]}, which counts` : `the reviews of ${listed(by, MAX_NAMED)}, which count`;
  const waits = [
    ...(closed.length === 0 ? [] : [`for its gates to open: ${listed(closed, MAX_NAMED)}`]),
    ...(isByMerge ? ['for the merge of its pull request'] : []),
  ];
  return `it is approved by ${what}; it waits ${waits.join('; then ')}`;
}

/** The approving reviews that count and that do not, with the reasons, as `applyReviews` has found them. */
export function shownReviews(
  repository: Pick<PackageRepository, 'refusals'>,
  revision: string,
): { readonly uncounted: string | undefined; readonly approved: string | undefined } {
  const notes = repository.refusals.of(revision);
  const messageOf = (wanted: string) => notes.find(({ reason }) => reason === wanted)?.message;
  return { uncounted: messageOf('ReviewNotCounted'), approved: messageOf('ApprovedByReview') };
}

export async function verdictsOf(
  { store, signal }: Pick<ReviewContext, 'store' | 'signal'>,
  { evaluation, review, pull }: Pick<ReviewedProposal, 'evaluation' | 'review' | 'pull'>,
  reviews: readonly Review[],
): Promise<ReviewVerdicts> {
  const repository = store.repositoryOf(evaluation.revision);
  const reviewed = ofProposal(repository, evaluation, pull, signal);
  const current = await commitsThatCount(repository.git, reviewed, approvedCommits(reviews, review.approvers));
  const { record } = evaluation;
  const rest = { known: record.lastReviews ?? [], rejectedAt: rejectedAt(record) };
  return evaluateReviews(reviews, review.approvers, (commit) => current.has(commit), rest);
}

/** When a proposal was rejected last: reviews from before it do not count, also in a pull request that is opened again. */
export function rejectedAt({ steps }: Pick<RevisionRecord, 'steps'>): string | undefined {
  return steps.findLast(({ action }) => action === 'reject')?.at;
}

/**
 * Writes the condition about requested changes if it is not what it should be. Returns whether it wrote: then the revision is evaluated again.
 */
async function reportChanges(
  { store, events }: ReviewContext,
  { object, evaluation: { revision, gates }, pull }: ReviewedProposal,
  changesRequested: readonly Review[],
): Promise<boolean> {
  // No condition can be written into a Kptfile that cannot be read; the check reports that.
  if (revision.kptfile === undefined) return false;
  const gate = gates.find(({ type }) => type === REVIEWED_TYPE);
  const before = revision.kptfile?.status?.conditions?.find(({ type }) => type === REVIEWED_TYPE);
  const isRequested = changesRequested.length > 0;
  const condition = !isRequested
    ? { status: 'True' as const, reason: 'NoChangesRequested', message: 'no reviewer requests changes' }
    : {
        status: 'False' as const,
        reason: 'ChangesRequested',
        message: changesRequestedBy(changesRequested),
      };
  const isWritten = before?.status === condition.status && before.message === condition.message;
  if (gate === undefined || (isWritten && gate.state === (isRequested ? 'NotTrue' : 'Open'))) return false;
  // Requested changes stop a merge that waits in a queue of the host; nothing else removes it from there.
  const isClosed = isRequested && gate.state === 'Open';
  if (!isClosed && store.repositoryOf(revision).refusals.isInMergeQueue(revision)) return false;
  const conditions = [{ type: REVIEWED_TYPE, ...condition }];
  const reason = `reviews of ${pull.url}`;
  await store.change(
    keyText(keyOf(object)),
    { conditions },
    { actor: { name: REVIEW_ACTOR }, face: 'controller', reason },
  );
  if (isRequested) events.record(object, 'Warning', condition.reason, condition.message, 'changes');
  return true;
}

/** A review that is an approval in the name of a user. */
interface Candidate {
  readonly actor: Actor;
  readonly review: Review;
}

/**
 * The reviews that are approvals besides those that are recorded, and whether there are as many as are needed then. The users need the same right as
 * for an approval through the API. `notes` gets those that do not count.
 */
async function approvingReviews(
  context: ReviewContext,
  proposal: ReviewedProposal,
  approvals: ReviewVerdicts['approvals'],
  notes: ReviewNotes,
): Promise<{ readonly candidates: readonly Candidate[]; readonly isEnough: boolean }> {
  const { events, mayApprove, signal } = context;
  const { object, evaluation } = proposal;
  const { needed, given, barred, quorums } = recordedApprovals(evaluation);
  const counted = new Set([{ given }, ...quorums].flatMap((one) => one.given.map(({ subject }) => subject)));
  const decisions = (evaluation.record.approvals ?? []).filter(isDecision);
  // The host merges it: what follows is not to be approved again.
  const decided = new Set(decisions.flatMap(({ evidence }) => evidence ?? []));
  // A later review takes the place of the one that a decision was made by, which may have been dismissed.
  const replaceable = new Set(decisions.flatMap(({ evidence, subject }) => (evidence === undefined ? [] : subject)));
  const candidates: Candidate[] = [];
  for (const { subject, review } of approvals) {
    if (decided.has(review.url) || (counted.has(subject) && !replaceable.has(subject))) continue;
    const refuse = (why: string) => {
      const message = `the review ${review.url} of ${plainLine(review.author)} does not count: ${why}`;
      events.record(object, 'Warning', 'ReviewNotCounted', message, `review of ${review.author}`);
      notes.uncounted.add(message);
    };
    const by = { forge: context.teamsOf?.(proposal.forge) ?? proposal.forge, mayApprove, signal };
    const approver = await revisionApprover(by, proposal.review, review.author, keyOf(object));
    if (approver === undefined) continue;
    const { actor, problem } = approver;
    if (problem !== '') notes.unread.add(`the groups of ${plainLine(review.author)} may be missing${problem}`);
    const problems = quorums.map((quorum) => quorumProblem(quorum, actor));
    const bar = barred.find(({ name }) => name === subject);
    if (bar !== undefined) {
      const did = bar.because === 'proposed' ? 'proposed it' : 'changed its content';
      refuse(`${subject} ${did}; another user has to approve it`);
    } else if (problems.length > 0 && problems.every((problem) => problem !== undefined)) {
      refuse(`${subject} ${problems[0]}${problem}`);
    } else if (!(await approver.mayApprove())) {
      refuse(`${noRightText([subject])}, or change the policy${problem}`);
    } else candidates.push({ actor, review });
  }
  if (candidates.length === 0) return { candidates, isEnough: false };
  const together = new Set([...counted, ...candidates.map(({ actor }) => actor.name)]);
  const reached = (quorum: QuorumStatus) =>
    new Set([
      ...quorum.given.map(({ subject }) => subject),
      ...candidates.flatMap(({ actor }) => (quorumProblem(quorum, actor) === undefined ? actor.name : [])),
    ]).size;
  // A quorum of another namespace is for its users.
  const isMissing = quorums.some((one) => one.quorum.namespace === undefined && reached(one) < one.needed);
  return { candidates, isEnough: together.size >= needed && !isMissing };
}

/** Records the approval of one user; the next one follows when the revision has changed by it. */
async function approve(
  context: ReviewContext,
  proposal: ReviewedProposal,
  candidates: readonly Candidate[],
): Promise<boolean> {
  const { client, events, signal } = context;
  const { object } = proposal;
  const [first] = candidates;
  if (first === undefined) return false;
  if (!(await isUnchanged(context, proposal, candidates))) return false;
  const { actor, review } = first;
  const reason = `review ${review.url} of ${plainLine(review.author)}`;
  const published = { ...object, spec: { ...object.spec, lifecycle: 'Published' as const } };
  try {
    await client
      .as(actor, 'api')
      .subResource('approval')
      .update(packageRevisionKind, published, { reason, evidence: review.url, review: review.id, signal });
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    events.record(object, 'Warning', 'NotApproved', error.message, 'approval');
    return false;
  }
  events.record(object, 'Normal', 'Approved', `approved as ${actor.name} by ${reason}`, 'approval');
  return true;
}

/** Reads what decides once more: the pull request, its reviews, and at last the revision with its policies. */
async function isUnchanged(
  context: ReviewContext,
  proposal: ReviewedProposal,
  candidates: readonly Candidate[],
): Promise<boolean> {
  const { store } = context;
  const { evaluation, object, review, pull } = proposal;
  const { pull: present, reviews } = await proposal.readState();
  proposal.note(present);
  const { state, base, head } = present;
  const isSame = base.branch === pull.base.branch && head.branch === pull.head.branch;
  if (state !== 'open' || !isSame) return false;
  const now = await verdictsOf(context, proposal, reviews);
  const stays = candidates.every(({ review: { id } }) => now.approvals.some((one) => one.review.id === id));
  if (!stays || now.changesRequested.length > 0) return false;
  // Those that were recorded before count together with this one.
  if ((await endedApprovals(context, proposal, reviews)).length > 0) return false;
  const { content, policy } = await store.evaluate(keyText(keyOf(object)));
  return content.content === evaluation.content.content && isDeepStrictEqual(policy.review, review);
}
