import type { Comment, Forge, PullRequest } from '../../../src/forge/forge.ts';
import { timestamp } from '../../../src/foundation/time/clock.ts';

/** A comment with a command counts so long. */
const COMMAND_AGE_MS = 60 * 60_000;
const MAX_COMMENTS = 200;

/** The comments whose commands may still count, read once for all of them, when the first one is looked for. */
export type ReadComments = () => Promise<readonly Comment[]>;

export function commentsOf(
  forge: Pick<Forge, 'comments'>,
  { number, hasComments }: PullRequest,
  now: number,
  signal: AbortSignal,
): ReadComments {
  if (hasComments === false) return async () => [];
  let read: Promise<readonly Comment[]> | undefined;
  return () => {
    read ??= forge.comments(number, timestamp(now - COMMAND_AGE_MS), MAX_COMMENTS, signal);
    return read;
  };
}
