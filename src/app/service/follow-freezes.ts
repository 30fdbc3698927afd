import type { EventRecorder } from '../../controller/event-recorder.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { type FreezeRule, freezeText } from '../../package/model/policy/approval-rules.ts';
import type { FreezeTimes } from '../policies/freeze-times.ts';
import type { LogSink } from './log/log-entry.ts';

export interface FreezeFollowing {
  readonly freezes: Pick<FreezeTimes, 'follow'>;
  readonly clock: Clock;
  readonly log: LogSink;
  readonly events: Pick<EventRecorder, 'record'>;
}

/** Logs and records as events that freezes begin and end, until the returned function is called. */
export function followFreezes({ freezes, clock, log, events }: FreezeFollowing): () => void {
  /** The last texts, by namespace and name. */
  const known = new Map<string, string>();
  return freezes.follow(({ freeze, rule, ended }) => {
    const subject = `${freeze.metadata.namespace}/${freeze.metadata.name}`;
    const isFrozen = ended === undefined;
    const message = isFrozen
      ? `no revision is approved and nothing is delivered: ${freezeText(rule)}`
      : `the freeze of ${scopeOf(rule)} ended: ${ended}`;
    if (isFrozen && known.get(subject) === message) return;
    if (isFrozen) known.set(subject, message);
    else known.delete(subject);
    const event = isFrozen ? 'Frozen' : 'FreezeEnded';
    log({ at: clock.now(), level: isFrozen ? 'warn' : 'info', event, subject, message });
    events.record(freeze, isFrozen ? 'Warning' : 'Normal', event, message);
  });
}

function scopeOf({ isInstallation, namespace }: FreezeRule): string {
  return isInstallation ? 'all namespaces' : `namespace ${namespace}`;
}
