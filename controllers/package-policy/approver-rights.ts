import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { listed } from '../../src/foundation/text/counted.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { NewCondition } from '../../src/resource/object/condition.ts';
import { mergersOf } from '../pull-request/checks/missing-until-merge.ts';
import type { MayApprove } from '../pull-request/rights.ts';

/** Type of the condition of a policy whose reviewers are named, and whose reviews or merges publish. */
export const APPROVERS_PERMITTED = 'ApproversPermitted';

/** Subjects that a message names. */
const MAX_NAMED = 10;
/** Subjects of a policy whose rights are asked for. */
const MAX_ASKED = 100;
/** For so long, in milliseconds, an answer of a cluster counts, which no event corrects. */
const ANSWER_MS = 300_000;

/** Whether a policy names users whose reviews or merges publish, if they may approve. */
export function namesApprovers({ review }: PackagePolicy['spec']): boolean {
  return review !== undefined && review.publishOn !== 'approval' && review.approvers.length > 0;
}

/**
 * Whether the users in `approvers` may approve in the namespace of the policy: otherwise the first sign would be a review or a merge that counts for
 * nothing. Which teams they are in is not asked for: they count as members of all. Undefined where there are none, and while it is not decided.
 */
export async function approverRights(
  { metadata, spec }: Pick<PackagePolicy, 'metadata' | 'spec'>,
  mayApprove: MayApprove,
  signal: AbortSignal,
): Promise<NewCondition | undefined> {
  const { review } = spec;
  if (review === undefined || !namesApprovers(spec)) return undefined;
  const place = { name: '', ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) };
  const without: string[] = [];
  try {
    for (const user of mergersOf(review).slice(0, MAX_ASKED))
      if (!(await mayApprove(user, place, signal))) without.push(user.name);
  } catch (error) {
    if (isSluiceError(error, 'Unavailable')) return undefined;
    throw error;
  }
  const type = APPROVERS_PERMITTED;
  if (without.length === 0) return { type, status: 'True', reason: 'Permitted', message: '' };
  const merges = review.publishOn === 'merge' ? ', and their merges are out of band unless others approved' : '';
  const message = `spec.review.approvers names ${listed(without, MAX_NAMED)} without the right to approve in this namespace (update of packagerevisions/approval), so that their reviews count as no approval${merges}; bind a role that has it, such as sluice:approver, and check the name of the role in their binding`;
  return { type, status: 'False', reason: 'NotPermitted', message };
}

/** The same answers for a while, for a cluster, where each question is a request. */
export function remembered(mayApprove: MayApprove, clock: Pick<Clock, 'monotonic'>): MayApprove {
  const answers = new Map<string, { readonly isAllowed: boolean; readonly atMs: number }>();
  return async (user, place, signal) => {
    const nowMs = clock.monotonic();
    for (const [key, { atMs }] of answers) if (nowMs - atMs >= ANSWER_MS) answers.delete(key);
    const question = JSON.stringify([user.name, user.groups ?? [], place.namespace]);
    const known = answers.get(question);
    if (known !== undefined) return known.isAllowed;
    const isAllowed = await mayApprove(user, place, signal);
    answers.set(question, { isAllowed, atMs: nowMs });
    return isAllowed;
  };
}
