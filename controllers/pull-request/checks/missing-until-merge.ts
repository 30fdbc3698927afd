import { type ApprovalStatus, areEnough } from '../../../src/package/kernel/approvals.ts';
import { missingApprovals } from '../../../src/package/kernel/missing-approvals.ts';
import { approverOf, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { BlockingRule, ReviewApproval } from '../../../src/package/model/revision/revision-state.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import { givenBy, type UserApproval } from '../reviews/approvals-at-merge.ts';
import type { ApproverContext } from '../reviews/approver-at.ts';

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
 * approvals besides those that are recorded.
 */
export async function missingUntilMerge(
  { mayApprove, signal }: Pick<ApproverContext, 'mayApprove' | 'signal'>,
  review: Pick<ReviewPolicy, 'approvers' | 'teams'>,
  {
    approvals,
    revision,
    rules: { forbidSelfApproval, since },
    statusWith,
  }: {
    readonly approvals: readonly UserApproval[];
    readonly revision: ObjectKey;
    readonly rules: { readonly forbidSelfApproval: boolean; readonly since: string | undefined };
    statusWith(approvals: readonly ReviewApproval[]): ApprovalStatus;
  },
): Promise<MissingUntilMerge> {
  const given = approvals.map(givenBy);
  const status = statusWith(given);
  if (areEnough(status, { forbidSelfApproval })) return NOTHING_MISSING;
  const isLast = ({ name: subject, groups }: Actor) =>
    areEnough(statusWith([...given, { subject, ...(groups === undefined ? {} : { groups }), at: '', evidence: '' }]), {
      forbidSelfApproval,
    });
  const possible = mergersOf(review).filter(isLast);
  const unmet = [...(forbidSelfApproval ? [status] : []), ...status.quorums].find(
    (one) => one.given.length < one.needed,
  );
  const by = unmet?.given.map(({ subject }) => subject).join(', ');
  const progress =
    unmet === undefined || by === '' ? undefined : `${unmet.given.length} of ${unmet.needed} approvals, by ${by}`;
  const can = await isAnyPermitted(possible);
  if (can) return { rules: [], progress: progress && `${progress}; another mapped user has to merge` };
  const missing = missingApprovals(status, forbidSelfApproval, since);
  return { rules: missing, progress: progress && `${progress}; no merge by another mapped user would be enough` };

  async function isAnyPermitted(actors: readonly Actor[]): Promise<boolean> {
    if (mayApprove === undefined) return actors.length > 0;
    for (const actor of actors.slice(0, MAX_ASKED)) if (await mayApprove(actor, revision, signal)) return true;
    return actors.length > MAX_ASKED;
  }
}

/** The users whose merge can be an approval. Which teams they are in is not known before: they may be in all. */
export function mergersOf({ approvers, teams = [] }: Pick<ReviewPolicy, 'approvers' | 'teams'>): readonly Actor[] {
  const ofTeams = teams.flatMap(({ groups }) => groups);
  const actors = new Map<string, Actor>();
  for (const { user } of approvers) {
    const actor = approverOf(approvers, user);
    if (actor === undefined) continue;
    const groups = [...new Set([...(actors.get(actor.name)?.groups ?? []), ...(actor.groups ?? []), ...ofTeams])];
    actors.set(actor.name, { name: actor.name, ...(groups.length === 0 ? {} : { groups }) });
  }
  return [...actors.values()];
}
