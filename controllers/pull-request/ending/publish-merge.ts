import type { MergedState, PullRequest } from '../../../src/forge/forge.ts';
import type { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { approverOf, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { Approval } from '../../../src/package/model/record/record.ts';
import { approverOfRecord } from '../../../src/package/model/record/withdrawn-approval.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { MergedBranch } from '../../../src/package/model/revision/revision-state.ts';
import { decisionOf } from '../../../src/package/store/approve-by-merge.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EntryPoint, RequestContext } from '../../../src/resource/object/request-context.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { membersAt } from '../batch/batch-branch.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { withdrawnApproval } from '../merging/withdrawn-approvals.ts';
import { rejectedAt, verdictsOf } from '../reviews/apply-reviews.ts';
import {
  approvalsAtMerge,
  mergeAsApproval,
  noRightText,
  reviewsAsCandidates,
  reviewsUntilMerge,
} from '../reviews/approvals-at-merge.ts';
import type { ReviewedProposal } from '../reviews/reviewed-proposal.ts';
import { commitsWithContent } from '../reviews/same-content.ts';
import { authorsOf, type ReviewVerdicts } from '../reviews/verdicts.ts';
import type { MayApprove } from '../rights.ts';
import { writeComment } from '../write-comment.ts';
import { describeBypass, OUT_OF_BAND_TOPIC } from './describe-bypass.ts';
import { hostMerges } from './host-merges.ts';
import { type MergeAttempt, mergedProposal, mergeText, publishInName, requestInName } from './publish-in-name.ts';

export interface MergeContext {
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'repositoryOf' | 'update'>;
  readonly client: Client;
  readonly events: EventDeduplicator;
  readonly mayApprove: MayApprove | undefined;
  readonly signal: AbortSignal;
}

export type MergedPull = ReviewedProposal;

/** The decision by which the host was to merge this head; undefined if there is none. */
export function decisionForHead({ pull, evaluation }: Pick<MergedPull, 'pull' | 'evaluation'>) {
  const decision = decisionOf(evaluation, evaluation.revision.namespace);
  // The branch of several proposals has the package of this one, which the kernel compares.
  const isOfHead = decision?.mergeOf === pull.head.commit || isBatchBranch(pull.head.branch);
  return isOfHead ? decision : undefined;
}

/**
 * Publishes a proposal at the commit to which the host merged it, if the kernel allows it. What was merged in spite of closed gates or missing
 * approvals is on the main branch all the same: it is recorded as out of band, which targets do not deliver. Returns why it
 * was not published: the repository may have to be read before.
 */
export async function publishMerge(context: MergeContext, proposal: MergedPull): Promise<SluiceError | undefined> {
  const { object, evaluation, review, pull, forge } = proposal;
  const { store, events, mayApprove, signal } = context;
  const { revision } = evaluation;
  const { commit = '' } = pull.merged ?? {};
  const decided = decisionForHead(proposal);
  const { verdicts, objection, withdrawn, merge } = await verdictsAtMerge(context, proposal, decided);
  const decision = withdrawn === undefined ? decided : undefined;
  const publishes = review.publishOn === 'merge';
  const candidates = [...merge.candidates, ...(publishes ? reviewsAsCandidates(verdicts) : [])];
  // Others merge by the rules of the host alone, which count as no approval.
  const { approvals, refused } =
    decision === undefined
      ? await approvalsAtMerge({ forge, mayApprove, signal }, review, candidates, keyOf(object))
      : { approvals: [], refused: [] };
  const isMapped = approverOf(review.approvers, pull.merged?.by) !== undefined;
  const notPermitted = isMapped && refused.length > 0 ? noRightText(refused) : undefined;
  const uncounted = decision === undefined ? merge.uncounted : undefined;
  const reason = uncounted === undefined ? mergeText(pull) : `${mergeText(pull)}; ${uncounted}`;
  // Without the decision the merge alone publishes only where the policy says so.
  const notDecided = publishes ? undefined : withdrawn;
  const head = await mergedBranch(store.repositoryOf(revision), revision, pull);
  const requestFor = (attempt: Pick<MergeAttempt, 'by'>) =>
    decision === undefined ? requestInName(attempt, reason, pull.url) : asDecided(decision, reason);
  const name = keyText(keyOf(object));
  const publish = async (attempt: MergeAttempt) => {
    const { evidence = pull.url } = decision ?? attempt.by ?? {};
    // Otherwise the merge would be published by the rules of the host alone, which had let that user merge.
    const notApproved = (attempt.by === undefined ? (uncounted ?? notPermitted) : undefined) ?? notDecided;
    const merged = {
      ...mergedProposal(pull, attempt, notApproved),
      head,
      ...(objection === undefined ? {} : { objection }),
    };
    const update = { action: 'approve', expectedCommit: revision.commit, evidence, merged } as const;
    const request = requestFor(attempt);
    if (attempt.refusal !== undefined) {
      // What cannot be recorded either, such as another package, is no bypass.
      await store.update(name, update, { ...request, dryRun: true });
      // Before the proposal ends: a process that ends in between begins again, and the comment is changed in place.
      await reportBypass(context, proposal, attempt.refusal);
    }
    return store.update(name, update, request);
  };
  const published = await publishInName(approvals, publish);
  switch (published.result) {
    case 'published': {
      const message = `published at ${commit}: ${requestFor(published).reason}`;
      count(events.record(object, 'Normal', 'Approved', message, 'ended'));
      return undefined;
    }
    case 'out_of_band': {
      const message = `${reason} although it could not be published, so that it is out of band and is not delivered: ${published.refusal.message}`;
      count(events.record(object, 'Warning', 'OutOfBand', message, 'ended'));
      return undefined;
    }
    case 'not_published': {
      const message = `${reason}: ${published.refusal.message}`;
      count(events.record(object, 'Warning', 'MergeNotPublished', message, 'ended'));
      return published.refusal;
    }
  }

  /** A merge that is not published is looked at again and again, and counts once. */
  function count(isNew: boolean): void {
    if (isNew) hostMerges.publish({ origin: 'proposal', result: published.result });
  }
}

/** The head that was merged, and all packages that it proposes. Of a head that the repository does not have it is not known what it brings. */
async function mergedBranch(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  { path }: PackageRevision,
  { head: { branch, commit }, merged }: PullRequest,
): Promise<MergedBranch> {
  const names = isBatchBranch(branch) ? ((await membersAt(git, commit)) ?? []) : [];
  // Users can write a commit that lists packages which are not proposed.
  const isProposed = (one: PackageRevision) => one.lifecycle === 'Proposed' || one.commit === merged?.commit;
  const others = names.flatMap(({ name }) => index.get(name) ?? []).filter(isProposed);
  const paths = [...new Set([path, ...others.map((one) => one.path)])];
  return { commit, paths, ...(isOid(merged?.base ?? '') ? { onto: merged?.base ?? '' } : {}) };
}

/** Of a pull request that several proposals share, `batch/write-batch.ts` reports all of them at once. */
async function reportBypass(context: MergeContext, proposal: MergedPull, refusal: SluiceError): Promise<void> {
  const { pull, evaluation } = proposal;
  if (isBatchBranch(pull.head.branch)) return;
  const about = { name: evaluation.revision.name, pullUrl: pull.url, by: pull.merged?.by };
  await writeComment(context, proposal, OUT_OF_BAND_TOPIC, describeBypass(about, refusal));
}

/** In the name of the approval that the host merged for. */
function asDecided(decision: Approval, merged: string): RequestContext {
  const { face, evidence } = decision;
  return {
    actor: approverOfRecord(decision),
    face: face as EntryPoint,
    reason: evidence === undefined ? merged : `${merged}, approved by ${evidence}`,
  };
}

/**
 * The reviews from before the merge, and what they have against it: changes that were requested and that no gate shows yet, and why the decision
 * for it does not count any more.
 */
async function verdictsAtMerge(
  context: MergeContext,
  proposal: MergedPull,
  decided: Approval | undefined,
): Promise<{
  readonly verdicts: ReviewVerdicts;
  readonly objection?: string;
  readonly withdrawn?: string;
  readonly merge: Awaited<ReturnType<typeof mergeAsApproval>>;
}> {
  const { evaluation, pull, review } = proposal;
  const isShown = evaluation.gates.some(({ type, state }) => type === REVIEWED_TYPE && state === 'NotTrue');
  const { reviews, ...state }: MergedState =
    review.publishOn === 'merge' ? await proposal.readMerged(pull) : { reviews: await proposal.readReviews() };
  const verdicts = await verdictsOf(context, proposal, reviewsUntilMerge(reviews, pull));
  const withdrawn = decided === undefined ? undefined : await withdrawnApproval(context, proposal, decided, verdicts);
  const { git } = context.store.repositoryOf(evaluation.revision);
  const isCurrent = async (commit: string) => (await commitsWithContent(git, evaluation, [commit])).has(commit);
  const { approvers } = review;
  const merge = await mergeAsApproval(pull, state, {
    ...{ approvers, isCurrent, rejectedAt: rejectedAt(evaluation.record) },
  });
  const { changesRequested } = verdicts;
  return {
    ...{ verdicts, merge },
    ...(withdrawn === undefined ? {} : { withdrawn }),
    ...(isShown || changesRequested.length === 0 ? {} : { objection: authorsOf(changesRequested) }),
  };
}
