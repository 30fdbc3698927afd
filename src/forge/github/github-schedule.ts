import { z } from 'zod';
import type { ScheduledMerge } from '../forge.ts';

/** The ways to enable auto-merge, by the method of the merge. */
const ENABLED = ['AutoMergeEnabledEvent', 'AutoSquashEnabledEvent', 'AutoRebaseEnabledEvent'];
const MAX_EVENTS = 100;
const EVENT = 'actor { ...Login } createdAt';

/** What is read of a pull request; uses the fragment `Login`. */
export const SCHEDULE = `timelineItems(last: ${MAX_EVENTS}, itemTypes: [AUTO_MERGE_ENABLED_EVENT, AUTO_SQUASH_ENABLED_EVENT,
    AUTO_REBASE_ENABLED_EVENT, AUTO_MERGE_DISABLED_EVENT, ADDED_TO_MERGE_QUEUE_EVENT]) {
    pageInfo { hasPreviousPage }
    nodes { __typename ${[...ENABLED, 'AutoMergeDisabledEvent', 'AddedToMergeQueueEvent'].map((type) => `... on ${type} { ${EVENT} }`).join(' ')} }
  }`;

const eventSchema = z.object({
  __typename: z.string(),
  actor: z.object({ __typename: z.string(), login: z.string() }).nullish(),
  createdAt: z.string(),
});

export const scheduleSchema = z.object({
  pageInfo: z.object({ hasPreviousPage: z.boolean() }),
  nodes: z.array(eventSchema.nullish()).nullish(),
});

/**
 * The schedule by which GitHub may have merged a pull request. GitHub does not report the head for which auto-merge was enabled, and users set the
 * dates by which its timeline orders commits, so that none is sure. A merge queue removes a pull request whose head changes: what a user puts into it is
 * merged with that head, unless auto-merge has put it there.
 */
export function scheduledIn(
  { pageInfo, nodes }: z.infer<typeof scheduleSchema>,
  { mergedAt, head }: { readonly mergedAt: string; readonly head: string },
): ScheduledMerge | undefined {
  const events = (nodes ?? []).flatMap((one) => one ?? []);
  // Nodes that could not be read are null.
  const isComplete = !pageInfo.hasPreviousPage && events.length === nodes?.length;
  if (!isComplete) return { by: undefined, at: events.at(-1)?.createdAt ?? mergedAt, commit: undefined };
  const enabledAt = events.findLastIndex(({ __typename: type }) => ENABLED.includes(type));
  // In the second of the merge, GitHub may have disabled it because of that.
  const isDisabled = events
    .slice(enabledAt + 1)
    .some(
      ({ __typename: type, createdAt }) =>
        type === 'AutoMergeDisabledEvent' && Date.parse(createdAt) < Date.parse(mergedAt),
    );
  const queued = events.findLast(({ __typename: type }) => type === 'AddedToMergeQueueEvent');
  const enabled = events[enabledAt];
  if (enabled !== undefined && (queued !== undefined || !isDisabled)) {
    const { actor, createdAt: at } = enabled;
    return { by: actor?.login, at, commit: undefined };
  }
  return queued && { by: queued.actor?.login, at: queued.createdAt, commit: head };
}
