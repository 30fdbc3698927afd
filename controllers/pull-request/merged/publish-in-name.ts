import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import { REVIEW_ACTOR } from '../../../src/package/model/policy/review-policy.ts';
import type { MergedProposal, ReviewApproval } from '../../../src/package/model/revision/revision-state.ts';
import { TransitionRefusedError } from '../../../src/package/plan/transition.ts';
import type { RequestContext } from '../../../src/resource/object/request-context.ts';
import { givenBy, type UserApproval } from '../reviews/approvals-at-merge.ts';
import { plainLine } from '../text/quote.ts';

/** A request to publish a merge. */
export interface MergeAttempt {
  /** In whose name; undefined in that of Sluice. */
  readonly by: UserApproval | undefined;
  /** The approvals of the others. */
  readonly others: readonly ReviewApproval[];
  /** Why it is to be recorded as out of band; undefined to publish it in band. */
  readonly refusal: SluiceError | undefined;
}

/** What became of a merge. Texts of `refusal` say why it could not be published in band, or at all. */
export type MergeResult<Published> =
  | { readonly result: 'published'; readonly published: Published; readonly by: UserApproval | undefined }
  | { readonly result: 'out_of_band'; readonly published: Published; readonly refusal: SluiceError }
  | { readonly result: 'not_published'; readonly refusal: SluiceError };

/**
 * Publishes a merge in the name of the first user whose approval counts, with those of the others: rules about people can exclude the user who
 * merged, such as the author. What the kernel refuses in every name is recorded as out of band. Throws what `publish` throws, except a refusal.
 */
export async function publishInName<Published>(
  approvals: readonly UserApproval[],
  publish: (attempt: MergeAttempt) => Promise<Published>,
): Promise<MergeResult<Published>> {
  const barred = new Set<UserApproval>();
  let refused: { readonly name: Pick<MergeAttempt, 'by' | 'others'>; readonly refusal: SluiceError } | undefined;
  for (const by of approvals.length === 0 ? [undefined] : approvals) {
    const others = approvals.filter((one) => one !== by && !barred.has(one)).map(givenBy);
    const name = { by, others };
    try {
      return { result: 'published', published: await publish({ ...name, refusal: undefined }), by: name.by };
    } catch (error) {
      if (!isSluiceError(error, 'Refused')) throw error;
      const isOfUser = isBarred(error);
      if (refused === undefined || !isOfUser) refused = { name, refusal: error };
      if (!isOfUser || by === undefined) break;
      barred.add(by);
    }
  }
  if (refused === undefined) throw new SluiceError('Internal', 'no request to publish the merge was made');
  const { name, refusal } = refused;
  try {
    return { result: 'out_of_band', published: await publish({ ...name, refusal }), refusal };
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    return { result: 'not_published', refusal: error };
  }
}

/** Who merged what. */
export function mergeText({ url, merged }: Pick<PullRequest, 'url' | 'merged'>): string {
  return `${url} was merged by ${merged?.by === undefined ? 'an unknown user' : plainLine(merged.by)}`;
}

/** The merge as it is published by an attempt. `notApproved`: why no user who may approve stands behind it. */
export function mergedProposal(
  { merged, closedAt }: Pick<PullRequest, 'closedAt' | 'merged'>,
  { others, refusal }: Pick<MergeAttempt, 'others' | 'refusal'>,
  notApproved: string | undefined,
): MergedProposal {
  return {
    commit: merged?.commit ?? '',
    ...(closedAt === undefined ? {} : { at: closedAt }),
    ...(notApproved === undefined ? {} : { notApproved }),
    ...(others.length === 0 ? {} : { approvals: others }),
    ...(refusal === undefined ? {} : { recordBypass: true }),
  };
}

/** The request for an attempt. `merged` says who merged what. */
export function requestInName({ by }: Pick<MergeAttempt, 'by'>, merged: string, pullUrl: string): RequestContext {
  if (by === undefined) return { actor: { name: REVIEW_ACTOR }, face: 'controller', reason: merged };
  const reason = by.evidence === pullUrl ? merged : `${merged}, approved by ${by.evidence}`;
  return { actor: by.actor, face: 'api', reason };
}

/** Whether the kernel refused because of the user, whatever else it had against the request. */
function isBarred(error: SluiceError): boolean {
  if (!(error instanceof TransitionRefusedError)) return false;
  return error.details?.refusals.some(({ code, gate }) => code === 'NotAllowed' && gate === undefined) === true;
}
