import type { Review } from '../../src/forge/forge.ts';

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
 * Evaluates reviews, oldest first. Of each user the last one counts; a dismissed one counts for nothing, and revives none before it. An
 * approval counts for the content that was reviewed; a request for changes stays until its author or the host withdraws it.
 * `isCurrent` returns whether the package at a commit has the present content.
 */
export function evaluateReviews(
  reviews: readonly Review[],
  approvers: readonly { readonly user: string; readonly subject: string }[],
  isCurrent: (commit: string) => boolean,
): ReviewVerdicts {
  const subjects = new Map(approvers.map(({ user, subject }) => [user.toLowerCase(), subject]));
  // Names of users are case-insensitive on all hosts.
  const last = new Map(reviews.map((review) => [review.author.toLowerCase(), review]));
  const approvals: { subject: string; review: Review }[] = [];
  const changesRequested: Review[] = [];
  const uncounted: { review: Review; reason: string }[] = [];
  for (const [author, review] of last) {
    const subject = subjects.get(author);
    if (review.state === 'changes-requested' && subject !== undefined) changesRequested.push(review);
    if (review.state !== 'approved') continue;
    if (subject === undefined) {
      const reason =
        'spec.review.approvers of the policy does not list this user; add an entry if the review should count';
      uncounted.push({ review, reason });
    } else if (review.commit === undefined || !isCurrent(review.commit)) {
      const reason = 'the package has changed since; a new review is needed';
      uncounted.push({ review, reason });
    } else if (!approvals.some((one) => one.subject === subject)) approvals.push({ subject, review });
  }
  return { approvals, changesRequested, uncounted };
}
