import type { ScheduledMerge } from '../forge.ts';
import { pushedSchema, type Timeline } from './gitea-schemas.ts';

const BASE_CHANGE = 'change_target_branch';

/** When the base was changed last. */
export function baseChangeIn(timeline: readonly Timeline[]): string | undefined {
  const entry = timeline.findLast(({ type }) => type === BASE_CHANGE);
  return entry && (entry.created_at ?? '');
}

/**
 * The schedule by which Gitea may have merged a pull request. Its entry does not name the head, which is that of the last push before it. Gitea writes
 * the entry of a push after the branch has changed, and none any more once it has merged, so that the head of a merged pull request is not compared
 * with it: a branch can be moved after the merge.
 */
export function scheduledIn(timeline: readonly Timeline[]): ScheduledMerge | undefined {
  const at = timeline.findLastIndex(({ type }) => type === 'pull_scheduled_merge');
  const entry = timeline[at];
  const later = timeline.slice(at + 1);
  if (entry === undefined || later.some(({ type }) => type === 'pull_cancel_scheduled_merge')) return undefined;
  const { user, created_at: time } = entry;
  // A force push removes commits from the entries before it. Another target was not chosen by the user who scheduled the merge.
  const isOther = (one: Timeline) =>
    one.type === BASE_CHANGE || (one.type === 'pull_push' && pushOf(one)?.isForced !== false);
  const push = timeline.slice(0, at).findLast(({ type }) => type === 'pull_push');
  const commit = push === undefined || later.some(isOther) ? undefined : pushOf(push)?.head;
  return { by: user?.login, at: time ?? '', commit };
}

/** Undefined if the text of the entry is not as expected. */
function pushOf({ body }: Timeline): { readonly isForced: boolean; readonly head: string | undefined } | undefined {
  let text: unknown;
  try {
    text = JSON.parse(body ?? '');
  } catch {
    return undefined;
  }
  const { data } = pushedSchema.safeParse(text);
  if (data === undefined) return undefined;
  // Of a force push the old and the new head, else the new commits, of which the oldest is the first one.
  const commits = data.commit_ids ?? [];
  // Gitea also calls it one where the head stays the same.
  const isSame = commits.length === 2 && commits[0] === commits[1];
  return { isForced: data.is_force_push === true && !isSame, head: commits.at(-1) };
}
