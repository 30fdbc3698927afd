import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Review } from '../forge.ts';

/** Some thousand reviews: more than a discussion has. */
const MAX_PAGES = 200;

/** What has no verdict is undefined. */
export interface ReviewPage {
  readonly reviews: readonly (Review | undefined)[];
  /** The number of entries of all pages; undefined where the host does not report it. */
  readonly total?: number | undefined;
  /** True where the page shows that there is none behind it. */
  readonly isLast?: boolean;
}

/**
 * Reads all pages of reviews: as many entries as the host reports, else up to the empty page behind the last one. Returns the last verdict of
 * each author, oldest first. Rejects with LimitExceeded rather than with less than all: what is missing could be a request for changes.
 */
export async function lastVerdicts(
  what: string,
  readPage: (page: number) => Promise<ReviewPage>,
): Promise<readonly Review[]> {
  const last = new Map<string, Review>();
  let read = 0;
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { reviews, total = Number.POSITIVE_INFINITY, isLast = false } = await readPage(page);
    read += reviews.length;
    for (const review of reviews) {
      if (review === undefined) continue;
      // The order is that of the last ones.
      last.delete(review.author);
      last.set(review.author, review);
    }
    if (isLast || reviews.length === 0 || read >= total) return [...last.values()];
  }
  throw new SluiceError(
    'LimitExceeded',
    `${what} has more than ${MAX_PAGES} pages of reviews and comments of reviews, so that its verdicts are not known; ` +
      'close it, and open another one from the same branch',
  );
}
