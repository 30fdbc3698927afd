import type { Event } from '../../src/resource/kinds/core/event.ts';
import type { Notification } from '../../src/resource/kinds/sluice/notification.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { matchingRules } from './match-event.ts';
import { occurredAt, occurrenceId } from './message.ts';
import { isDone, LATE_MS, type Progress, withEverythingBefore } from './progress.ts';

/** Events that wait for one receiver; older ones are dropped. */
const MAX_WAITING = 200;

export interface PendingEvent {
  readonly id: string;
  readonly at: number;
  readonly event: Stored<Event>;
  readonly rules: ReturnType<typeof matchingRules>;
}

export interface PendingEvents {
  /** In the order in which they occurred. */
  readonly waiting: readonly PendingEvent[];
  readonly dropped: number;
  readonly progress: Progress;
}

/**
 * The events that a Notification has still to send, and the progress without those that are too many. Clients write the times of events:
 * the progress never passes `now`, and an event of the future waits, so that it is not the reason to drop others.
 */
export function pendingEvents(
  notification: Stored<Notification>,
  events: Iterable<Stored<Event>>,
  progress: Progress,
  now: number,
): PendingEvents {
  const waiting: PendingEvent[] = [];
  for (const event of events) {
    const time = occurredAt(event);
    const at = Math.min(time, now);
    if (at < progress.until || time > now + LATE_MS) continue;
    const rules = matchingRules(notification, event);
    if (rules.length === 0) continue;
    const id = occurrenceId(event);
    if (!isDone(progress, { at, id })) waiting.push({ id, at, event, rules });
  }
  waiting.sort((a, b) => a.at - b.at || versionOf(a) - versionOf(b));
  const surplus = waiting.length - MAX_WAITING;
  const newest = surplus > 0 ? waiting[surplus - 1] : undefined;
  if (newest === undefined) return { waiting, dropped: 0, progress };
  const kept = withEverythingBefore(progress, newest.at + 1);
  const rest = waiting.filter(({ at }) => at >= kept.until);
  return { waiting: rest, dropped: waiting.length - rest.length, progress: kept };
}

/** Only for events of the same millisecond: both storages count their writes. */
function versionOf({ event }: PendingEvent): number {
  return Number(event.metadata.resourceVersion) || 0;
}
