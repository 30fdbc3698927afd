import { isCommandComment } from '../../../src/forge/comments/closing-comment.ts';
import { postComment } from '../../../src/forge/comments/post-comment.ts';
import type { Forge } from '../../../src/forge/forge.ts';
import { approverOf, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { isEdited } from '../../pull-request/commands/edited-comments.ts';
import { inlineCode } from '../../pull-request/text/quote.ts';
import type { Written } from '../reading/written.ts';
import type { ReadComments } from './comments.ts';

const TOPIC = 'commands';
const COMMANDS = ['/sluice adopt', '/sluice rerun'];

/**
 * Replies to the last command that is none in pull requests of users, such as one for proposals, if a user whom one of these policies maps has written
 * it: in one comment, which is changed in place.
 */
export async function replyToUnknownCommand(
  { forge, number }: { readonly forge: Pick<Forge, 'setComment'>; readonly number: number },
  readComments: ReadComments,
  reviews: readonly Pick<ReviewPolicy, 'approvers'>[],
  written: Written,
  signal: AbortSignal,
): Promise<void> {
  const approvers = reviews.flatMap((review) => review.approvers);
  if (written.checks === undefined || approvers.length === 0) return;
  const unknown = (await readComments()).findLast((comment) => {
    const isUnknown = commandOf(comment.body)?.match(/^\/sluice\s+(adopt|rerun)\b/i) === null;
    return isUnknown && !isEdited(comment) && approverOf(approvers, comment.author) !== undefined;
  });
  if (unknown === undefined || unknown.url === written.unknown) return;
  const known = COMMANDS.map((command) => inlineCode(command)).join(' and ');
  const text = `${inlineCode(commandOf(unknown.body) ?? '', 100)} of ${inlineCode(unknown.author)} is no command in pull requests of users; their commands are ${known}.`;
  await postComment(forge, number, TOPIC, text, signal);
  written.unknown = unknown.url;
}

function commandOf(body: string): string | undefined {
  const [line = ''] = body.split('\n', 1);
  return isCommandComment(line) ? line.trim() : undefined;
}
