import type { PullRequest, Review } from '../../../src/forge/forge.ts';
import { unlessMissing } from '../../../src/foundation/sluice-error.ts';
import type { ShownPull } from '../shown-proposals.ts';
import type { ReviewedProposal } from './reviewed-proposal.ts';
import { standingRequests } from './verdicts.ts';

/** Read only if the pull request has changed since: a revision changes more often than its reviews. `now` is in milliseconds of running time. */
export async function reviewsOf(
  entry: ShownPull,
  pull: PullRequest,
  now: number,
  signal: AbortSignal,
): Promise<Pick<ReviewedProposal, 'reviews' | 'readReviews' | 'readMerged' | 'readState' | 'note'>> {
  const { pulls, branch, number } = entry;
  const readEarlier = async () => {
    const earlier: Review[] = [];
    // Users may delete pull requests.
    for (const one of pulls.earlierOf(branch))
      if (one !== number) earlier.push(...((await unlessMissing(pulls.forge.reviews(one, signal))) ?? []));
    return standingRequests(earlier);
  };
  const readReviews = async () => [...(await readEarlier()), ...(await pulls.forge.reviews(number, signal))];
  const readMerged = async (merged: PullRequest) => {
    const earlier = await readEarlier();
    const state = await pulls.forge.mergedState(merged, signal);
    return { ...state, reviews: [...earlier, ...state.reviews] };
  };
  /** As they were read by this reconciliation. */
  let justRead: readonly Review[] | undefined;
  const readState = async () => {
    if (justRead !== undefined) {
      const now = await pulls.forge.get(number, signal);
      // Each change of a review is a change of the pull request: after the last review there was none.
      const isSame = justRead.some(({ submittedAt }) => Date.parse(submittedAt) >= Date.parse(now.updatedAt));
      return { pull: now, reviews: isSame ? justRead : await readReviews() };
    }
    const earlier = await readEarlier();
    const state = await pulls.state(number, signal);
    return { pull: state.pull, reviews: [...earlier, ...state.reviews] };
  };
  const of = (await pulls.ofBranch(branch, signal)) ?? pull;
  if (entry.reviews?.of !== of) {
    const known = pulls.reviewsOf(of);
    if (known !== undefined) entry.reviews = { of, list: [...(await readEarlier()), ...known], readMs: now };
    else if (pulls.forge.batchesReads) entry.reviews = { of, list: (await readState()).reviews, readMs: now };
    else {
      justRead = await readReviews();
      entry.reviews = { of, list: justRead, readMs: now };
    }
  }
  return { reviews: entry.reviews.list, readReviews, readMerged, readState, note: (one) => pulls.note(one) };
}
