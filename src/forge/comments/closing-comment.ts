import type { Closing } from '../forge.ts';

interface Written {
  readonly author: string | undefined;
  /** RFC 3339. */
  readonly at: string | null | undefined;
  readonly body: string | null | undefined;
}

/** Whether a comment is a command, or an attempt at one. Phones begin with a capital letter; with four spaces it is code in Markdown. */
export function isCommandComment(body: string): boolean {
  return /^ {0,3}\/sluice(\s|$)/i.test(body);
}

/**
 * The end of a pull request or issue by a user, with their last comment on it. Comments in the order of writing. A command is no reason, and neither
 * is what was written before it was last opened again, which was about an earlier end.
 */
export function closingOf(by: string, comments: readonly Written[], reopenedAt: string | null | undefined): Closing {
  const openedMs = Date.parse(reopenedAt ?? '');
  const isReason = ({ author, at, body }: Written) =>
    author === by && !isCommandComment(body ?? '') && !(Date.parse(at ?? '') < openedMs);
  return { by, comment: comments.findLast(isReason)?.body ?? undefined };
}
