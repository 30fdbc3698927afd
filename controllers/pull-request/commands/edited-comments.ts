import type { Comment, Forge } from '../../../src/forge/forge.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { SyncRequests } from '../../repository/sync-requests.ts';

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
  { forge, requests, repository }: CommentSource,
  signal: AbortSignal,
): Promise<'author' | 'edited' | 'unknown'> {
  if (isEdited(comment)) return 'edited';
  const isAsWritten = (await forge.isAsWritten(comment, signal)) ?? requests?.isAsWritten(repository, comment);
  if (isAsWritten === undefined) return 'unknown';
  return isAsWritten ? 'author' : 'edited';
}

export interface CommentSource {
  readonly forge: Pick<Forge, 'isAsWritten'>;
  readonly requests: Pick<SyncRequests, 'isAsWritten'> | undefined;
  readonly repository: ObjectKey;
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

/** Why a comment of unknown authorship has no effect, and the next step. */
export const UNKNOWN_AUTHOR =
  'this host does not report whether another user has edited the comment, and no webhook with the event of comments has shown how its author wrote it; submit a review instead, or set up the webhook (docs/webhooks.md) and write the command again';
