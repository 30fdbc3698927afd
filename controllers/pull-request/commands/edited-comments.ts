import type { Comment, Forge } from '../../../src/forge/forge.ts';
import { sluiceCommand } from '../../../src/package/api/explain/explainer.ts';
import type { Command } from './parse-command.ts';

/** By its times, which say nothing on hosts that report no edits. */
export function isEdited({ createdAt, updatedAt }: Comment): boolean {
  return updatedAt !== createdAt;
}

/**
 * Who wrote the present text of a comment: its author, or perhaps another user; `unknown` where the host does not report edits, and no webhook has
 * shown how it was written. Hosts let users with write access edit comments of others, and report no times below a second.
 */
export async function authorshipOf(
  comment: Comment,
  { forge, asShown }: CommentSource,
  signal: AbortSignal,
): Promise<'author' | 'edited' | 'unknown'> {
  if (isEdited(comment)) return 'edited';
  const isAsWritten = (await forge.isAsWritten(comment, signal)) ?? asShown(comment);
  if (isAsWritten === undefined) return 'unknown';
  return isAsWritten ? 'author' : 'edited';
}

export interface CommentSource {
  readonly forge: Pick<Forge, 'isAsWritten'>;
  /** Whether it is as webhooks have shown it to be written; undefined if none has. */
  asShown(comment: Comment): boolean | undefined;
}

/** A comment whose webhook may still arrive, and since when this process knows it, in milliseconds of running time. */
export interface AwaitedComment {
  readonly id: string;
  readonly sinceMs: number;
}

/** Hosts send webhooks within seconds. */
const MESSAGE_MS = 10_000;

/** How long to wait for the webhook of a comment, milliseconds; undefined if it does not arrive any more. Keeps since when. */
export function waitFor(state: { awaited?: AwaitedComment }, { id }: Comment, nowMs: number): number | undefined {
  if (state.awaited?.id !== id) state.awaited = { id, sinceMs: nowMs };
  return waitLeft(state.awaited, nowMs);
}

/** The same for the comment that is awaited. */
export function waitLeft({ sinceMs }: AwaitedComment, nowMs: number): number | undefined {
  const waitMs = sinceMs + MESSAGE_MS - nowMs;
  return waitMs > 0 ? waitMs : undefined;
}

/** Why a command of unknown authorship about a revision has no effect, and the next step. */
export function unknownAuthorText(name: string, command: Command): string {
  return `this host does not report whether another user has edited the comment, and no webhook with the event of comments has shown how its author wrote it; ${otherWay(name, command)}, or set up the webhook (docs/webhooks.md) and write the command again`;
}

/** The same without a comment. */
function otherWay(name: string, command: Command): string {
  if (command.verb === 'set')
    return `use ${sluiceCommand('rpkg', 'condition', 'set', name, command.type, command.status)}, as no review sets a condition`;
  return command.verb === 'reject' ? 'close the pull request instead' : 'submit a review instead';
}
