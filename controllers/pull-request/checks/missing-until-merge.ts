import { type ApprovalStatus, areEnough } from '../../../src/package/kernel/approvals.ts';
import { missingApprovals } from '../../../src/package/kernel/missing-approvals.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { BlockingRule, ReviewApproval } from '../../../src/package/model/revision/revision-state.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import { givenBy, type UserApproval } from '../reviews/approvals-at-merge.ts';
import { mergersOf } from '../reviews/mapped-rights.ts';
import type { MayApprove } from '../rights.ts';

/** Users whose rights are asked for; if none of them may approve, the others count as possible. */
const MAX_ASKED = 10;

/** The approvals that the merge of a pull request lacks. */
export interface MissingUntilMerge {
  /** Those that no merge completes. */
  readonly rules: readonly BlockingRule[];
  /** Which approvals there are with those in reviews, who has to merge, and which reviews do not count; undefined if that says nothing new. */
  readonly progress: string | undefined;
}

export const NOTHING_MISSING: MissingUntilMerge = { rules: [], progress: undefined };

/**
 * The approvals that are missing, with these from reviews, even once a user whom the policy maps has merged, which is an approval too: a required
 * check that waited for that one could hold up the merge that gives it. A user who has approved already gives no other one. `statusWith` counts
 * approvals besides those that are recorded. Where no merge is an approval, for which `unsureMerger` is the reason, one has to be there.
 */
export async function missingUntilMerge(
  { knownRights, signal }: { readonly knownRights: MayApprove | undefined; readonly signal: AbortSignal },
  review: Pick<ReviewPolicy, 'approvers' | 'policy' | 'teams'>,
  {
    approvals,
    revision,
    rules: { forbidSelfApproval, since },
    unsureMerger,
    statusWith,
  }: {
    readonly approvals: readonly UserApproval[];
    readonly unsureMerger: string | undefined;
    readonly revision: ObjectKey;
    readonly rules: { readonly forbidSelfApproval: boolean; readonly since: string | undefined };
    statusWith(approvals: readonly ReviewApproval[]): ApprovalStatus;
  },
): Promise<MissingUntilMerge> {
  const given = approvals.map(givenBy);
  const status = statusWith(given);
  if (areEnough(status, { forbidSelfApproval })) {
    if (unsureMerger === undefined || approvals.length > 0 || mergersOf(review).length === 0) return NOTHING_MISSING;
    return { rules: [noCountedMerge(review, unsureMerger)], progress: undefined };
  }
  const isLast = ({ name: subject, groups }: Actor) =>
    areEnough(statusWith([...given, { subject, ...(groups === undefined ? {} : { groups }), at: '', evidence: '' }]), {
      forbidSelfApproval,
    });
  const possible = unsureMerger === undefined ? mergersOf(review).filter(isLast) : [];
  const unmet = [...(forbidSelfApproval ? [status] : []), ...status.quorums].find(
    (one) => one.given.length < one.needed,
  );
  const by = unmet?.given.map(({ subject }) => subject).join(', ');
  const progress =
    unmet === undefined || by === '' ? undefined : `${unmet.given.length} of ${unmet.needed} approvals, by ${by}`;
  const can = await isAnyPermitted(possible);
  if (can) return { rules: [], progress: progress && `${progress}; another mapped user has to merge` };
  const missing = missingApprovals(
    status,
    forbidSelfApproval,
    since,
    given.length === 0 ? undefined : 'given, reviews included',
  );
  return { rules: missing, progress: progress && `${progress}; no merge by another mapped user would be enough` };

  async function isAnyPermitted(actors: readonly Actor[]): Promise<boolean> {
    if (knownRights === undefined) return actors.length > 0;
    for (const actor of actors.slice(0, MAX_ASKED)) if (await knownRights(actor, revision, signal)) return true;
    return actors.length > MAX_ASKED;
  }
}

function noCountedMerge({ policy }: Pick<ReviewPolicy, 'policy'>, why: string): BlockingRule {
  return {
    ...{ rule: 'Quorum', policy },
    message: `no merge is an approval here, since ${why}, and no user whom spec.review.approvers of the policy ${policy} lists approves this content`,
    resolvedBy: 'a review of one of these users',
  };
}
