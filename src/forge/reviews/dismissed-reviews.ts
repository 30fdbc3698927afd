import type { Review } from '../forge.ts';

export interface Dismissal {
  /** Id of the review. */
  readonly review: string;
  /** RFC 3339. */
  readonly at: string;
  /** The review requested changes. */
  readonly wasRequest: boolean;
}

/**
 * The reviews as they were at a merge, as far as they were against it: a request for changes that was dismissed since stands, also one of which it is
 * not known when it was dismissed. Hosts report times in seconds, so that a dismissal in that of the merge may be a later one.
 */
export function withRequestsAtMerge(
  reviews: readonly Review[],
  dismissals: readonly Dismissal[],
  mergedAt: string | undefined,
): readonly Review[] {
  return reviews.map((review) => {
    if (review.state !== 'dismissed') return review;
    const last = dismissals.findLast((one) => one.review === review.id);
    const isBefore = last !== undefined && Date.parse(last.at) < Date.parse(mergedAt ?? '');
    return isBefore || last?.wasRequest === false ? review : { ...review, state: 'changes-requested' };
  });
}
