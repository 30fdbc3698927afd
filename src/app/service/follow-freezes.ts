import type { EventRecorder } from '../../controller/event-recorder.ts';
import type { Informer } from '../../controller/informer.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { type FreezeRule, freezeText } from '../../package/model/policy/approval-rules.ts';
import { freezeRuleOf } from '../../package/store/freeze-objects.ts';
import type { Freeze } from '../../resource/kinds/sluice/freeze.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import type { LogSink } from './log-entry.ts';

export interface FreezeFollowing {
  readonly freezes: Pick<Informer<Freeze>, 'addHandler'>;
  readonly systemNamespace: string;
  readonly clock: Clock;
  readonly log: LogSink;
  readonly events: Pick<EventRecorder, 'record'>;
}

interface Known {
  readonly text: string;
  readonly cancel: () => void;
}

/** Logs and records as events that freezes begin and end, until the returned function is called. */
export function followFreezes({ freezes, systemNamespace, clock, log, events }: FreezeFollowing): () => void {
  const known = new Map<string, Known>();
  const report = (freeze: Stored<Freeze>, isFrozen: boolean, message: string) => {
    const event = isFrozen ? 'Frozen' : 'FreezeEnded';
    const subject = `${freeze.metadata.namespace}/${freeze.metadata.name}`;
    log({ at: clock.now(), level: isFrozen ? 'warn' : 'info', event, subject, message });
    events.record(freeze, isFrozen ? 'Warning' : 'Normal', event, message);
  };
  const end = (freeze: Stored<Freeze>, how: string) => {
    const key = keyText(keyOf(freeze));
    const before = known.get(key);
    if (before === undefined) return;
    before.cancel();
    known.delete(key);
    report(freeze, false, `the freeze of ${scopeOf(freezeRuleOf(freeze, systemNamespace))} ended: ${how}`);
  };
  const begin = (freeze: Stored<Freeze>) => {
    const key = keyText(keyOf(freeze));
    const rule = freezeRuleOf(freeze, systemNamespace);
    const { until } = rule;
    const rest = until === undefined ? undefined : until - clock.now();
    if (rest !== undefined && rest <= 0) return end(freeze, 'its time has passed');
    const text = `no revision is approved and nothing is delivered: ${freezeText(rule)}`;
    const before = known.get(key);
    before?.cancel();
    // A timer cannot wait for months; the wait continues then.
    const cancel = rest === undefined ? () => undefined : clock.schedule(rest, () => begin(freeze));
    known.set(key, { text, cancel });
    if (before?.text !== text) report(freeze, true, text);
  };
  const unsubscribe = freezes.addHandler((event) => {
    if (event.type === 'delete') end(event.object, 'it was deleted');
    else begin(event.object);
  });
  return () => {
    unsubscribe();
    for (const { cancel } of known.values()) cancel();
  };
}

function scopeOf({ isInstallation, namespace }: FreezeRule): string {
  return isInstallation ? 'all namespaces' : `namespace ${namespace}`;
}
