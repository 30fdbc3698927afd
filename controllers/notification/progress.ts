import type { Notification } from '../../src/resource/kinds/sluice/notification.ts';

/** An event can be written somewhat later than one with a later time. Milliseconds. */
export const LATE_MS = 60_000;
const MAX_RECENT = 64;

/** Which events are done. It is in the status of the Notification, so that a restart sends nothing twice. */
export interface Progress {
  /** Events before this time are done. Milliseconds since the epoch. */
  readonly until: number;
  /** Events at or after it that are done, in the order of their times. */
  readonly recent: readonly { readonly at: number; readonly id: string }[];
}

interface Occurrence {
  readonly at: number;
  readonly id: string;
}

/** The progress in a status; of a new Notification, that everything before its creation is done. */
export function progressOf(status: Notification['status'], creationTimestamp: string, now: number): Progress {
  const stored = Date.parse(status?.handledUntil ?? '');
  const until = Number.isNaN(stored) ? Date.parse(creationTimestamp) : stored;
  const recent = (status?.recent ?? []).flatMap((text) => {
    const [time = '', id = ''] = text.split(' ');
    const at = Date.parse(time);
    return Number.isNaN(at) || at > now + LATE_MS ? [] : [{ at, id }];
  });
  // A clock that was set back must not silence the Notification until it has caught up.
  return { until: until > now + LATE_MS ? now : until, recent };
}

/** The fields of the status for a progress. */
export function progressFields({ until, recent }: Progress): { handledUntil: string; recent: string[] } {
  return {
    handledUntil: new Date(until).toISOString(),
    recent: recent.map(({ at, id }) => `${new Date(at).toISOString()} ${id}`),
  };
}

export function isDone({ until, recent }: Progress, { at, id }: Occurrence): boolean {
  return at < until || recent.some((one) => one.id === id);
}

export function withDone(progress: Progress, occurrence: Occurrence): Progress {
  const recent = [...progress.recent, occurrence].sort((a, b) => a.at - b.at);
  const newest = recent.at(-1)?.at ?? 0;
  let { until } = progress;
  while (recent.length > MAX_RECENT || (recent[0] !== undefined && recent[0].at < newest - LATE_MS)) {
    const oldest = recent.shift();
    if (oldest !== undefined) until = Math.max(until, oldest.at + 1);
  }
  return { until, recent };
}

/** The progress after everything before a time was passed over. */
export function withEverythingBefore({ until, recent }: Progress, time: number): Progress {
  const next = Math.max(until, time);
  return { until: next, recent: recent.filter(({ at }) => at >= next) };
}
