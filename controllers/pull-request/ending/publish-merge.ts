import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { RevisionEvaluation, RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { RequestContext } from '../../../src/resource/object/request-context.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';

export interface MergeContext {
  readonly store: Pick<RevisionStore, 'update'>;
  readonly events: EventDeduplicator;
  readonly mayApprove: MayApprove | undefined;
  readonly signal: AbortSignal;
}

export interface MergedPull {
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  readonly pull: PullRequest;
}

/**
 * Publishes a proposal at the commit to which the host merged it, if the kernel allows it. What was merged in spite of closed gates or missing
 * approvals is on the main branch all the same: it is recorded as out of band, which targets do not deliver. Returns false if the repository has
 * to be read before.
 */
export async function publishMerge(
  context: MergeContext,
  { object, evaluation, review, pull }: MergedPull,
): Promise<boolean> {
  const { store, events, mayApprove, signal } = context;
  const { revision } = evaluation;
  const { commit = '', by } = pull.merged ?? {};
  const merger = by === undefined ? 'an unknown user' : plainLine(by);
  const subject = review.approvers.find(({ user }) => user.toLowerCase() === by?.toLowerCase())?.subject;
  const mayPublish =
    subject !== undefined && (mayApprove === undefined || (await mayApprove(subject, keyOf(object), signal)));
  // Others merge by the rules of the host alone, which count as no approval.
  const request: RequestContext = {
    ...(mayPublish ? { actor: { name: subject }, face: 'api' } : { actor: { name: REVIEW_ACTOR }, face: 'controller' }),
    reason: `${pull.url} was merged by ${merger}`,
  };
  const update = { action: 'approve', expectedCommit: revision.commit, evidence: pull.url } as const;
  const name = keyText(keyOf(object));
  try {
    await store.update(name, { ...update, merged: { commit } }, request);
    events.record(object, 'Normal', 'Approved', `published at ${commit}: ${request.reason}`, 'ended');
    return true;
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    return recordBypass(error.message);
  }

  async function recordBypass(refusal: string): Promise<boolean> {
    try {
      await store.update(name, { ...update, merged: { commit, recordBypass: true } }, request);
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
