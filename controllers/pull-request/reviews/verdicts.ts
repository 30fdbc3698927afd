import type { Review } from '../../../src/forge/forge.ts';
import { approverOf, type ReviewApprover } from '../../../src/package/model/policy/review-policy.ts';
import { isReplaced, type LastReview } from '../../../src/package/model/record/last-reviews.ts';
import type { Approval } from '../../../src/package/model/record/record.ts';
import { plainLine } from '../text/quote.ts';

/** Reviews of earlier pull requests that still stand: requests for changes. Approvals were for another proposal. */
export function standingRequests(reviews: readonly Review[]): readonly Review[] {
  return lastReviews(reviews).filter(({ state }) => state === 'changes-requested');
}

const MAX_TEXT_CHARACTERS = 1000;

/** The authors of reviews, each with the address of the review, in one line of bounded length. */
export function authorsOf(reviews: readonly Review[]): string {
  return plainLine(reviews.map(({ author, url }) => `${plainLine(author)} (${url})`).join(', '), MAX_TEXT_CHARACTERS);
}

/** The message of the condition about reviews that request changes. */
export function changesRequestedBy(reviews: readonly Review[]): string {
  return plainLine(`changes requested by ${authorsOf(reviews)}`, MAX_TEXT_CHARACTERS);
}

/** The last review of each user, oldest first. Names of users are case-insensitive on all hosts. */
export function lastReviews(reviews: readonly Review[]): readonly Review[] {
  const last = new Map<string, Review>();
  for (const review of reviews) {
    const author = review.author.toLowerCase();
    last.delete(author);
    last.set(author, review);
  }
  return [...last.values()];
}

/**
 * What the record has to know about these reviews before any of them is deleted, so that no earlier one of its user counts again: the last one of
 * each mapped user, unless it is the only one that has approved. Hosts need not return the earlier ones, of which `given` has those that counted.
 */
export function newLastReviews(
  reviews: readonly Review[],
  approvers: readonly ReviewApprover[],
  { given, known }: { readonly given: readonly Approval[]; readonly known: readonly LastReview[] | undefined },
): readonly LastReview[] {
  return lastReviews(reviews).flatMap((last) => {
    const { id, author, state, submittedAt: at } = last;
    const subject = approverOf(approvers, author)?.name;
    if (subject === undefined || given.some((one) => isApprovalBy(one, last))) return [];
    const isAgain = given.some((one) => one.subject === subject && one.review !== undefined);
    if (state === 'approved' && !isAgain) return [];
    const user = author.toLowerCase();
    const isKnown = known?.some((one) => one.user === user && one.id === id) === true;
    return isKnown || isReplaced(last, known) ? [] : [{ user, id, at }];
  });
}

/** Whether the review gave this approval. */
export function isApprovalBy({ review, evidence }: Approval, { id, url }: Pick<Review, 'id' | 'url'>): boolean {
  return url === evidence || (id !== '' && id === review);
}

/** The commits whose content decides whether a review counts: those that mapped users approved last. */
export function approvedCommits(
  reviews: readonly Review[],
  approvers: readonly { readonly user: string }[],
): readonly string[] {
  const users = new Set(approvers.map(({ user }) => user.toLowerCase()));
  return lastReviews(reviews).flatMap(({ author, state, commit }) =>
    state === 'approved' && users.has(author.toLowerCase()) ? (commit ?? []) : [],
  );
}

/** What the reviews of a pull request say, by the users whose reviews count. */
export interface ReviewVerdicts {
  /** Approving reviews of the present content, in the name of these users. */
  readonly approvals: readonly { readonly subject: string; readonly review: Review }[];
  /** Reviews that request changes, and were neither dismissed nor followed by another review of their author. */
  readonly changesRequested: readonly Review[];
  /** Approving reviews that do not count, with the reason. */
  readonly uncounted: readonly { readonly review: Review; readonly reason: string }[];
}

/**
 * Evaluates reviews, oldest first. Of each user the last one counts; a dismissed one counts for nothing, and revives none before it, nor does
 * one of `known` that was deleted. An approval counts for the content that was reviewed; a request for changes stays until its author or the
 * host withdraws it. Approvals from before a rejection, after which the same pull request was opened again, do not count.
 * `isCurrent` returns whether a review of this commit counts, as `commitsThatCount` has it.
 */
export function evaluateReviews(
  reviews: readonly Review[],
  approvers: readonly ReviewApprover[],
  isCurrent: (commit: string) => boolean,
  { known, rejectedAt }: { readonly known?: readonly LastReview[]; readonly rejectedAt?: string | undefined } = {},
): ReviewVerdicts {
  const approvals: { subject: string; review: Review }[] = [];
  const changesRequested: Review[] = [];
  const uncounted: { review: Review; reason: string }[] = [];
  for (const review of lastReviews(reviews)) {
    const subject = approverOf(approvers, review.author)?.name;
    if (review.state === 'changes-requested' && subject !== undefined) changesRequested.push(review);
    if (review.state !== 'approved') continue;
    if (subject === undefined) {
      const reason =
        'spec.review.approvers of the policy does not list this user; add an entry if the review should count';
      uncounted.push({ review, reason });
    } else if (isReplaced(review, known)) {
      const reason = 'the same user reviewed again after it, and deleted that; a new review is needed';
      uncounted.push({ review, reason });
    } else if (review.commit === undefined || !isCurrent(review.commit)) {
      const reason =
        'the package has changed since, or a gate was removed, or the reviewed commit does not change it; a new review is needed';
      uncounted.push({ review, reason });
    } else if (rejectedAt !== undefined && !(Date.parse(review.submittedAt) > Date.parse(rejectedAt))) {
      const reason = 'the proposal was rejected since; a new review is needed';
      uncounted.push({ review, reason });
    } else if (!approvals.some((one) => one.subject === subject)) approvals.push({ subject, review });
  }
  return { approvals, changesRequested, uncounted };
}
