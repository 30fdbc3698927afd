import { z } from 'zod';

/** So many users with their last reviews are kept: more than policies list. */
const MAX_ENTRIES = 1000;

export const lastReviewSchema = z.object({
  /** Of the Git host, in lower case. */
  user: z.string(),
  id: z.string(),
  /** When it was submitted, RFC 3339. */
  at: z.string(),
});

/** The last review of a user that was seen, after an approving one. */
export type LastReview = Readonly<z.infer<typeof lastReviewSchema>>;

/** What determines the place of a review among those of its user. */
export interface ReviewPlace {
  readonly id: string;
  readonly author: string;
  /** RFC 3339. */
  readonly submittedAt: string;
}

/** Whether the user had reviewed again after this review, be that later one deleted since or not. */
export function isReplaced({ id, author, submittedAt }: ReviewPlace, known: readonly LastReview[] = []): boolean {
  const last = known.find(({ user }) => user === author.toLowerCase());
  if (last === undefined || last.id === id) return false;
  const [time, lastTime] = [Date.parse(submittedAt), Date.parse(last.at)];
  // Hosts report times in seconds, and their ids are numbers that increase.
  if (time === lastTime) return id.length === last.id.length ? id < last.id : id.length < last.id.length;
  return !(time > lastTime);
}

/** The record with these as the last reviews of their users. */
export function withLastReviews<Known extends { readonly lastReviews?: readonly LastReview[] | undefined }>(
  record: Known,
  added: readonly LastReview[],
): Known {
  if (added.length === 0) return record;
  const kept = (record.lastReviews ?? []).filter(({ user }) => added.every((one) => one.user !== user));
  return { ...record, lastReviews: [...kept, ...added].slice(-MAX_ENTRIES) };
}
