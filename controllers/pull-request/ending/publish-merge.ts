import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { Approval } from '../../../src/package/model/record/record.ts';
import { approverOfRecord } from '../../../src/package/model/record/withdrawn-approval.ts';
import { decisionOf } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { keyOf, keyText } from '../../../src/resource/object/object.ts';
import type { EntryPoint, RequestContext } from '../../../src/resource/object/request-context.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { isBatchBranch } from '../batch/batch-name.ts';
import { withdrawnApproval } from '../merging/withdrawn-approvals.ts';
import { type ReviewedProposal, verdictsOf } from '../reviews/apply-reviews.ts';
import { revisionApprover } from '../reviews/approver-at.ts';
import { authorsOf } from '../reviews/verdicts.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';

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
 * approvals is on the main branch all the same: it is recorded as out of band, which targets do not deliver. Returns false if the repository has
 * to be read before.
 */
export async function publishMerge(context: MergeContext, proposal: MergedPull): Promise<boolean> {
  const { object, evaluation, review, pull } = proposal;
  const { store, events, mayApprove, signal } = context;
  const { revision } = evaluation;
  const { commit = '', by } = pull.merged ?? {};
  const merger = by === undefined ? 'an unknown user' : plainLine(by);
  const { forge } = proposal;
  const approver = await revisionApprover({ forge, mayApprove, signal }, review, by, keyOf(object));
  // Others merge by the rules of the host alone, which count as no approval.
  const byMerger: RequestContext = {
    ...(approver !== undefined && (await approver.mayApprove())
      ? { actor: approver.actor, face: 'api' }
      : { actor: { name: REVIEW_ACTOR }, face: 'controller' }),
    reason: `${pull.url} was merged by ${merger}`,
  };
  const decided = decisionForHead(proposal);
  const { objection, withdrawn } = await objectionTo(context, proposal, decided);
  const decision = withdrawn === undefined ? decided : undefined;
  const request = decision === undefined ? byMerger : asDecided(decision, `${byMerger.reason}`);
  const { evidence = pull.url } = decision ?? {};
  const update = { action: 'approve', expectedCommit: revision.commit, evidence } as const;
  const name = keyText(keyOf(object));
  const merged = {
    commit,
    ...(objection === undefined ? {} : { objection }),
    // Without the decision the merge alone publishes only where the policy says so.
    ...(withdrawn === undefined || review.publishOn === 'merge' ? {} : { notApproved: withdrawn }),
  };
  try {
    await store.update(name, { ...update, merged }, request);
    events.record(object, 'Normal', 'Approved', `published at ${commit}: ${request.reason}`, 'ended');
    return true;
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    return recordBypass(error.message);
  }

  async function recordBypass(refusal: string): Promise<boolean> {
    try {
      await store.update(name, { ...update, merged: { ...merged, recordBypass: true } }, request);
    } catch (error) {
      if (!isSluiceError(error, 'Refused')) throw error;
      events.record(object, 'Warning', 'MergeNotPublished', `${request.reason}: ${messageOf(error)}`, 'ended');
      return false;
    }
    const message = `${request.reason} although it could not be published, so that it is out of band and is not delivered: ${refusal}`;
    events.record(object, 'Warning', 'OutOfBand', message, 'ended');
    return true;
  }
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
 * What the reviews as they are now have against the merge: changes that were requested before it and that no gate shows yet, and why the decision
 * for it does not count any more.
 */
async function objectionTo(
  context: MergeContext,
  proposal: MergedPull,
  decided: Approval | undefined,
): Promise<{ readonly objection?: string; readonly withdrawn?: string }> {
  const { evaluation, pull } = proposal;
  const isShown = evaluation.gates.some(({ type, state }) => type === REVIEWED_TYPE && state === 'NotTrue');
  if (isShown && decided === undefined) return {};
  const verdicts = await verdictsOf(context, proposal, await proposal.readReviews());
  const why = decided === undefined ? undefined : await withdrawnApproval(context, proposal, decided, verdicts);
  const withdrawn = why === undefined ? {} : { withdrawn: why };
  const mergedAt = Date.parse(pull.closedAt ?? '');
  // A request of the same second counts: hosts report no smaller times.
  const before = verdicts.changesRequested.filter(({ submittedAt }) => !(Date.parse(submittedAt) > mergedAt));
  if (isShown || before.length === 0) return withdrawn;
  return { ...withdrawn, objection: authorsOf(before) };
}
