import type { MergedState, PullRequest, Review } from '../../../src/forge/forge.ts';
import { approverOf, type ReviewApprover, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { ReviewApproval } from '../../../src/package/model/revision/revision-state.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import { plainLine } from '../text/quote.ts';
import { type ApproverContext, revisionApprover } from './approver-at.ts';
import type { ReviewVerdicts } from './verdicts.ts';

/** What a user of the host did that can be an approval. */
export interface ApprovalCandidate {
  /** Undefined where the host does not report the user. */
  readonly login: string | undefined;
  /** RFC 3339. */
  readonly at: string;
  /** Address of the review or of the merge. */
  readonly evidence: string;
}

/** An approval in the name of a user of Sluice. */
export interface UserApproval extends Omit<ApprovalCandidate, 'login'> {
  readonly actor: Actor;
}

/** The reviews from before a merge. Those of the same second count: hosts report no smaller times. */
export function reviewsUntilMerge(reviews: readonly Review[], { closedAt = '' }: PullRequest): readonly Review[] {
  const mergedAt = Date.parse(closedAt);
  return reviews.filter(({ submittedAt }) => !(Date.parse(submittedAt) > mergedAt));
}

/**
 * The merge as an approval of the user who merged, where the host reports that user for sure. A scheduled merge is one of what that user had
 * scheduled, as a review is of what was reviewed: `uncounted` says why another one is none. `isCurrent` returns whether a review of a commit counts for what was merged.
 */
export async function mergeAsApproval(
  { merged, closedAt, updatedAt, url }: PullRequest,
  { scheduled, unsureMerger }: Pick<MergedState, 'scheduled' | 'unsureMerger'>,
  {
    approvers,
    isCurrent,
    rejectedAt,
  }: {
    readonly approvers: readonly ReviewApprover[];
    isCurrent(commit: string): Promise<boolean>;
    readonly rejectedAt?: string | undefined;
  },
): Promise<{ readonly candidates: readonly ApprovalCandidate[]; readonly uncounted?: string }> {
  const { by } = merged ?? {};
  const merge = { candidates: [{ login: by, at: closedAt ?? updatedAt, evidence: url }] };
  if (approverOf(approvers, by) === undefined) return merge;
  if (unsureMerger !== undefined) {
    const uncounted = `the merge is no approval, since another user may have made it: ${unsureMerger}; approve a pull request by a review before it is merged`;
    return { candidates: [], uncounted };
  }
  if (scheduled === undefined) return merge;
  const { by: user, at, commit } = scheduled;
  const problem =
    user === undefined || user.toLowerCase() !== by?.toLowerCase()
      ? 'another user merged it'
      : rejectedAt !== undefined && !(Date.parse(at) > Date.parse(rejectedAt))
        ? 'the proposal was rejected since'
        : commit === undefined
          ? 'the host does not report for which commit'
          : (await isCurrent(commit))
            ? undefined
            : `the package has changed since, or a gate was removed, or ${plainLine(commit).slice(0, 10)} does not change it`;
  if (problem === undefined) return merge;
  const who = user === undefined ? 'a user' : plainLine(user);
  return {
    candidates: [],
    uncounted: `the host merged it as ${who} had scheduled at ${plainLine(at)}, which is no approval, since ${problem}; approve a pull request by a review before you schedule its merge`,
  };
}

export function reviewsAsCandidates({ approvals }: Pick<ReviewVerdicts, 'approvals'>): readonly ApprovalCandidate[] {
  return approvals.map(({ review: { author, submittedAt, url } }) => ({
    ...{ login: author, at: submittedAt, evidence: url },
  }));
}

/**
 * The users who stand behind a merge, in the order of the candidates and each once: those whom the policy maps. All need the same right as for an
 * approval through the API; `refused` has the names of those without it.
 */
export async function approvalsAtMerge(
  context: ApproverContext,
  review: Pick<ReviewPolicy, 'approvers' | 'teams'>,
  candidates: readonly ApprovalCandidate[],
  revision: ObjectKey,
): Promise<{ readonly approvals: readonly UserApproval[]; readonly refused: readonly string[] }> {
  const approvals = new Map<string, UserApproval>();
  const refused = new Set<string>();
  for (const { login, ...given } of candidates) {
    const approver = await revisionApprover(context, review, login, revision);
    if (approver === undefined) continue;
    const { actor } = approver;
    if (approvals.has(actor.name) || refused.has(actor.name)) continue;
    if (await approver.mayApprove()) approvals.set(actor.name, { actor, ...given });
    else refused.add(actor.name);
  }
  return { approvals: [...approvals.values()], refused: [...refused] };
}

/** Why the merge of these users, or their reviews, are no approvals, and how they become some. */
export function noRightText(refused: readonly string[]): string {
  return `User "${refused.join('", "')}" may not update packagerevisions/approval in this namespace; grant that right, as the ClusterRole sluice:approver has it`;
}

/** An approval as the kernel and records have it. */
export function givenBy({ actor: { name: subject, groups }, ...given }: UserApproval): ReviewApproval {
  return { subject, ...(groups === undefined ? {} : { groups }), ...given };
}
