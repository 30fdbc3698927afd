import { approverOf, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { isEdited } from '../../pull-request/commands/edited-comments.ts';
import { parseCommand } from '../../pull-request/commands/parse-command.ts';
import { forgetWritten, type Written } from '../reading/written.ts';
import type { ReadComments } from './comments.ts';

/**
 * Makes the check that follows write everything again, if a comment by a user whom one of these policies maps requests that and was not taken yet. A
 * check evaluates everything in any case.
 */
export async function takeRerunRequest(
  readComments: ReadComments,
  reviews: readonly Pick<ReviewPolicy, 'approvers'>[],
  written: Written,
): Promise<void> {
  const approvers = reviews.flatMap((review) => review.approvers);
  // Without earlier checks everything is written.
  if (written.checks === undefined || approvers.length === 0) return;
  const last = (await readComments()).findLast((comment) => {
    const parsed = parseCommand(comment.body);
    const isRerun = parsed !== undefined && 'command' in parsed && parsed.command.verb === 'rerun';
    return isRerun && !isEdited(comment) && approverOf(approvers, comment.author) !== undefined;
  });
  if (last === undefined || last.url === written.rerun) return;
  written.rerun = last.url;
  forgetWritten(written);
}
