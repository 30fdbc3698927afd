import type { Forge, PullRequest, Review } from '../../src/forge/forge.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { RevisionEvaluation, RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type Stored } from '../../src/resource/object/object.ts';
import { recordedApprovals } from '../approval/recorded-approvals.ts';
import type { EventDeduplicator } from '../event-deduplicator.ts';
import { plainLine } from './quote.ts';
import type { MayApprove } from './rights.ts';
import { commitsWithContent } from './same-content.ts';
import { evaluateReviews, type ReviewVerdicts } from './verdicts.ts';

export interface ReviewContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly mayApprove: MayApprove | undefined;
  readonly signal: AbortSignal;
}

/** A proposal with the pull request that it is reviewed in. */
export interface ReviewedProposal {
  /** As it was read before `evaluation`: its version makes a decision about other content a conflict. */
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  readonly pull: PullRequest;
  readonly forge: Forge;
  /** Of the pull request, as they were last read. */
  readonly reviews: readonly Review[];
}

/**
 * Takes over what reviewers decided: requested changes close the gate `sluice.dev/Reviewed`, and approving reviews approve where the policy
 * says so, once the gates are open and there are as many as are needed. Until then none is recorded, so that a review that is dismissed
 * meanwhile leaves nothing behind.
 */
export async function applyReviews(context: ReviewContext, proposal: ReviewedProposal): Promise<void> {
  const { events } = context;
  const { object, evaluation, review } = proposal;
  const { approvals, changesRequested, uncounted } = await verdictsOf(context, proposal, proposal.reviews);
  if (await reportChanges(context, proposal, changesRequested)) return;
  if (review.publishOn !== 'review') return;
  for (const { review: one, reason } of uncounted) {
    const message = `the review ${one.url} of ${plainLine(one.author)} does not count: ${reason}`;
    events.record(object, 'Normal', 'ReviewNotCounted', message, `review of ${one.author}`);
  }
  if (changesRequested.length > 0 || approvals.length === 0) return;
  const { enforcement } = evaluation.policy;
  if (enforcement === 'enforce' && evaluation.gates.some(({ state }) => state !== 'Open')) return;
  await approve(context, proposal, approvals);
}

async function verdictsOf(
  { store }: ReviewContext,
  { evaluation, review }: ReviewedProposal,
  reviews: readonly Review[],
): Promise<ReviewVerdicts> {
  const approving = reviews.filter(({ state }) => state === 'approved');
  const { git } = store.repositoryOf(evaluation.revision);
  const commits = approving.flatMap(({ commit }) => commit ?? []);
  const current = await commitsWithContent(git, evaluation, commits);
  return evaluateReviews(reviews, review.approvers, (commit) => current.has(commit));
}

/** Writes the condition about requested changes if it is not what it should be. Returns whether it wrote: then the revision is evaluated again. */
async function reportChanges(
  { store, events }: ReviewContext,
  { object, evaluation: { revision } }: ReviewedProposal,
  changesRequested: readonly Review[],
): Promise<boolean> {
  const before = revision.kptfile?.status?.conditions?.find(({ type }) => type === REVIEWED_TYPE);
  const by = changesRequested.map(({ author, url }) => `${plainLine(author)} (${url})`).join(', ');
  if (by === '' && before?.status !== 'False') return false;
  const condition =
    by === ''
      ? { status: 'True' as const, reason: 'NoChangesRequested', message: 'no reviewer requests changes' }
      : {
          status: 'False' as const,
          reason: 'ChangesRequested',
          message: plainLine(`changes requested by ${by}`, 1000),
        };
  if (before?.status === condition.status && before.message === condition.message) return false;
  const conditions = [{ type: REVIEWED_TYPE, ...condition }];
  await store.change(keyText(keyOf(object)), { conditions }, { actor: { name: REVIEW_ACTOR }, face: 'controller' });
  if (by !== '') events.record(object, 'Warning', condition.reason, condition.message, 'changes');
  return true;
}

/**
 * Records the approval of one user; the next one follows when the revision has changed by it. The user needs the same right as for an approval
 * through the API.
 */
async function approve(
  context: ReviewContext,
  proposal: ReviewedProposal,
  approvals: ReviewVerdicts['approvals'],
): Promise<void> {
  const { client, events, mayApprove, signal } = context;
  const { object, evaluation, pull, forge } = proposal;
  const { needed, given, barred } = recordedApprovals(evaluation);
  const counted = new Set(given.map(({ subject }) => subject));
  const candidates: (typeof approvals)[number][] = [];
  for (const one of approvals) {
    const { subject, review } = one;
    if (counted.has(subject)) continue;
    const refuse = (why: string) =>
      events.record(
        ...([object, 'Warning', 'ReviewNotCounted', `the review ${review.url} does not count: ${why}`] as const),
        `review of ${review.author}`,
      );
    const bar = barred.find(({ name }) => name === subject);
    if (bar !== undefined) {
      const did = bar.because === 'proposed' ? 'proposed it' : 'changed its content';
      refuse(`${subject} ${did}; another user has to approve it`);
    } else if (mayApprove !== undefined && !(await mayApprove(subject, keyOf(object), signal))) {
      refuse(
        `User "${subject}" may not update packagerevisions/approval in this namespace; grant that right, or change the policy`,
      );
    } else candidates.push(one);
  }
  const [first] = candidates;
  if (first === undefined || counted.size + candidates.length < needed) return;
  // What has an effect is read again before it.
  if ((await forge.get(pull.number, signal)).state !== 'open') return;
  const now = await verdictsOf(context, proposal, await forge.reviews(pull.number, signal));
  const stays = candidates.every(({ review: { id } }) => now.approvals.some(({ review }) => review.id === id));
  if (!stays || now.changesRequested.length > 0) return;
  const { subject, review } = first;
  const reason = `review ${review.url} of ${plainLine(review.author)}`;
  const published = { ...object, spec: { ...object.spec, lifecycle: 'Published' as const } };
  try {
    await client
      .as({ name: subject }, 'api')
      .subResource('approval')
      .update(packageRevisionKind, published, { reason, signal });
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    events.record(object, 'Warning', 'NotApproved', error.message, 'approval');
    return;
  }
  events.record(object, 'Normal', 'Approved', `approved as ${subject} by ${reason}`, 'approval');
}
