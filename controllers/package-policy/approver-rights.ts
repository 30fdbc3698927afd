import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { listed } from '../../src/foundation/text/counted.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';
import { mergersOf, permitCommand } from '../pull-request/reviews/mapped-rights.ts';
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
    // Busy: the API is not served yet.
    if (isSluiceError(error, 'Unavailable') || isSluiceError(error, 'Busy')) return undefined;
    throw error;
  }
  const type = APPROVERS_PERMITTED;
  if (without.length === 0) return { type, status: 'True', reason: 'Permitted', message: '' };
  const merges = review.publishOn === 'merge' ? ', and their merges are out of band unless others approved' : '';
  const message = `${withoutRight(without)} in this namespace (update of packagerevisions/approval), so that their reviews count as no approval${merges}; bind a role that has it, such as sluice:approver, and check the name of the role in their binding`;
  return { type, status: 'False', reason: 'NotPermitted', message };
}

const BEFORE_NAMES = 'spec.review.approvers names ';
const AFTER_NAMES = ' without the right to approve';

/** The beginning of the message about users without the right to approve. The API has no field for their names: `namesIn` reads them back. */
function withoutRight(names: readonly string[]): string {
  return `${BEFORE_NAMES}${listed(names, MAX_NAMED)}${AFTER_NAMES}`;
}

/** The names of users in the message of the condition, which have no white space; those that it does not list are not among them. */
function namesIn(message: string): ReadonlySet<string> {
  const end = message.indexOf(AFTER_NAMES);
  if (!message.startsWith(BEFORE_NAMES) || end < 0) return new Set();
  return new Set(message.slice(BEFORE_NAMES.length, end).split(/, | and \d+ more$/));
}

/** The command that gives users of a policy the right to approve, as far as its condition names them: none if it names none. */
export function permitCommands({
  metadata: { name, namespace },
  spec: { review },
  status,
}: Pick<PackagePolicy, 'metadata' | 'spec' | 'status'>): string[] {
  const lacking = findCondition(status?.conditions, APPROVERS_PERMITTED);
  if (review === undefined || lacking?.status !== 'False') return [];
  const named = namesIn(lacking.message);
  const users = mergersOf(review).filter((user) => named.has(user.name));
  return users.length === 0 ? [] : [permitCommand(name, namespace, users)];
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
