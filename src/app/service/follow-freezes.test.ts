import { expect, test } from 'vitest';
import type { InformerHandler } from '../../controller/informer.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { type Freeze, freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import type { Stored } from '../../resource/object/object.ts';
import { FreezeTimes } from '../policies/freeze-times.ts';
import { followFreezes } from './follow-freezes.ts';
import type { LogEntry } from './log/log-entry.ts';

test('the log and the events have the beginning and the end of each freeze, once', () => {
  const clock = new ManualClock(Date.parse('2026-01-14T10:00:00Z'));
  const logged: LogEntry[] = [];
  const recorded: string[] = [];
  let handle: InformerHandler<Freeze> = () => undefined;
  const informer = {
    addHandler: (handler: InformerHandler<Freeze>) => {
      handle = handler;
      return () => undefined;
    },
  };
  const times = new FreezeTimes(informer, clock, 'platform');
  const stop = followFreezes({
    freezes: times,
    ...{ clock, log: (entry) => logged.push(entry) },
    events: { record: (_object, type, reason, message) => void recorded.push(`${type} ${reason}: ${message}`) },
  });
  const freeze = (namespace: string, until?: string) => {
    const object = freezeKind.complete({ metadata: { name: 'core', namespace }, spec: { reason: 'repair', until } });
    const metadata = {
      ...object.metadata,
      uid: namespace,
      resourceVersion: '1',
      creationTimestamp: '2026-01-14T09:00:00Z',
    };
    return { ...object, metadata } as Stored<Freeze>;
  };
  const here = freeze('default');
  handle({ type: 'add', object: here });
  handle({ type: 'update', object: here, old: here });
  handle({ type: 'add', object: freeze('platform', '2026-01-14T11:00:00Z') });
  clock.advance(3_600_000);
  handle({ type: 'delete', object: here });
  expect(logged.map(({ level, event, subject, message }) => `${level} ${event} ${subject}: ${message}`)).toEqual([
    'warn Frozen default/core: no revision is approved and nothing is delivered: namespace default is frozen by Freeze default/core since 2026-01-14T09:00:00Z until it is ended (repair)',
    'warn Frozen platform/core: no revision is approved and nothing is delivered: all namespaces are frozen by Freeze platform/core since 2026-01-14T09:00:00Z until 2026-01-14T11:00:00Z (repair)',
    'info FreezeEnded platform/core: the freeze of all namespaces ended: its time has passed',
    'info FreezeEnded default/core: the freeze of namespace default ended: it was deleted',
  ]);
  expect(recorded.map((text) => text.split(':')[0])).toEqual([
    ...['Warning Frozen', 'Warning Frozen', 'Normal FreezeEnded', 'Normal FreezeEnded'],
  ]);
  stop();
});
