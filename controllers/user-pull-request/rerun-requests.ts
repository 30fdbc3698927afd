import type { Forge, PullRequest } from '../../src/forge/forge.ts';
import { approverOf, type ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { isEdited } from '../pull-request/commands/edited-comments.ts';
import { parseCommand } from '../pull-request/commands/parse-command.ts';
import { forgetWritten, type Written } from './user-pulls.ts';

/** A comment with a command counts so long. */
const COMMAND_AGE_MS = 60 * 60_000;
const MAX_COMMENTS = 200;

/**
 * Makes the check that follows write everything again, if a comment by a user whom one of these policies maps requests that and was not taken yet. A
 * check evaluates everything in any case.
 */
export async function takeRerunRequest(
  forge: Pick<Forge, 'comments'>,
  { number, updatedAt, hasComments }: PullRequest,
  reviews: readonly Pick<ReviewPolicy, 'approvers'>[],
  written: Written,
  signal: AbortSignal,
): Promise<void> {
  const approvers = reviews.flatMap((review) => review.approvers);
  // Without earlier checks everything is written.
  if (written.checks === undefined || hasComments === false || approvers.length === 0) return;
  const since = new Date(Date.parse(updatedAt) - COMMAND_AGE_MS).toISOString();
  const comments = await forge.comments(number, since, MAX_COMMENTS, signal);
  const last = comments.findLast((comment) => {
    const parsed = parseCommand(comment.body);
    const isRerun = parsed !== undefined && 'command' in parsed && parsed.command.verb === 'rerun';
    return isRerun && !isEdited(comment) && approverOf(approvers, comment.author) !== undefined;
  });
  if (last === undefined || last.url === written.rerun) return;
  written.rerun = last.url;
  forgetWritten(written);
}
