import type { Review } from '../forge.ts';

/**
 * The reviews of a pull request whose base was changed last at this time (RFC 3339): approving ones from before were of the changes against another
 * branch, so that they name no commit. Hosts report times in seconds: in that of the change, a review may have been before it.
 */
export function ofPresentBase(reviews: readonly Review[], changedAt: string | undefined): readonly Review[] {
  if (changedAt === undefined) return reviews;
  const since = Date.parse(changedAt);
  return reviews.map((review) => {
    const isOther = review.state === 'approved' && !(Date.parse(review.submittedAt) > since);
    return isOther ? { ...review, commit: undefined } : review;
  });
}
