import { SluiceError } from '../foundation/sluice-error.ts';
import type { Review } from './forge.ts';

/** Some thousand reviews: more than a discussion has. */
const MAX_PAGES = 200;

/**
 * Reads all pages of reviews, up to the empty one behind the last. Returns the last verdict of each author, oldest first. What has no verdict is
 * undefined. Rejects with LimitExceeded rather than with less than all: what is missing could be a request for changes.
 */
export async function lastVerdicts(
  what: string,
  readPage: (page: number) => Promise<readonly (Review | undefined)[]>,
): Promise<readonly Review[]> {
  const last = new Map<string, Review>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const reviews = await readPage(page);
    if (reviews.length === 0) return [...last.values()];
    for (const review of reviews) {
      if (review === undefined) continue;
      // The order is that of the last ones.
      last.delete(review.author);
      last.set(review.author, review);
    }
  }
  throw new SluiceError(
    'LimitExceeded',
    `${what} has more than ${MAX_PAGES} pages of reviews and comments of reviews, so that its verdicts are not known; ` +
      'close it, and open another one from the same branch',
  );
}
