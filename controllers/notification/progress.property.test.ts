import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/resource/kinds/core/event.ts';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { runs } from '../../test/support/runs.ts';
import { pendingEvents } from './pending-events.ts';
import { isDone, type Progress, progressFields, progressOf, withDone } from './progress.ts';

const NOW = Date.parse('2026-01-02T03:04:05Z');
const occurrences = fc.uniqueArray(
  fc.record({ at: fc.integer({ min: NOW, max: NOW + 300_000 }), id: fc.stringMatching(/^[0-9a-f]{6}$/) }),
  { selector: ({ id }) => id, maxLength: 150 },
);

test('what is done stays done, also after a restart, and the status is bounded', () => {
  fc.assert(
    fc.property(occurrences, (list) => {
      let progress: Progress = { until: NOW, recent: [] };
      for (const one of list) progress = withDone(progress, one);
      const restarted = progressOf({ ...progressFields(progress) } as never, '', NOW + 300_000);
      expect(restarted).toEqual(progress);
      expect(restarted.recent.length).toBeLessThanOrEqual(64);
      for (const one of list) expect(isDone(restarted, one)).toBe(true);
    }),
    { numRuns: runs(200) },
  );
});

test('an event that is somewhat late is not lost', () => {
  const progress = withDone({ until: NOW, recent: [] }, { at: NOW + 50_000, id: 'a' });
  expect(isDone(progress, { at: NOW + 1, id: 'b' })).toBe(false);
});

test('a clock that was set back does not silence a Notification', () => {
  const ahead = progressFields({ until: NOW + 3_600_000, recent: [] });
  expect(progressOf(ahead, '', NOW).until).toBe(NOW);
});

const METADATA = { namespace: 'default', uid: 'u', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' };
const ALL = {
  ...notificationKind.complete({
    metadata: { name: 'all' },
    spec: { events: [{}], webhook: { url: 'https://a.example' } },
  }),
  metadata: { ...METADATA, name: 'all', resourceVersion: '1' },
};

const eventAt = (name: string, at: number) =>
  ({
    metadata: { ...METADATA, name, uid: name, resourceVersion: '1' },
    involvedObject: { kind: 'DeliveryTarget', name: 'east' },
    ...{ type: 'Normal', reason: 'Delivered', message: '', lastTimestamp: new Date(at).toISOString() },
  }) as Stored<Event>;

test('no number of events of the future keeps others from being sent', () => {
  const real = fc.array(fc.integer({ min: 1, max: 50_000 }), { minLength: 1, maxLength: 20 });
  const forged = fc.integer({ min: 61_000, max: 2_000_000_000_000 });
  fc.assert(
    fc.property(real, forged, fc.constantFrom(0, 1, 320), fc.boolean(), (delays, ahead, count, first) => {
      const future = Array.from({ length: count }, (_, index) => eventAt(`f${index}`, NOW + 50_000 + ahead));
      const events = delays.map((delay, index) => eventAt(`r${index}`, NOW + delay));
      let progress: Progress = { until: NOW, recent: [] };
      const sent: string[] = [];
      const deliver = (list: readonly Stored<Event>[], now: number) => {
        for (let round = 0; round <= 400; round += 1) {
          const { waiting, dropped, progress: next } = pendingEvents(ALL, list, progress, now);
          expect(dropped).toBe(0);
          progress = next;
          const [one] = waiting;
          if (one === undefined) return;
          sent.push(one.event.metadata.name);
          progress = withDone(progress, one);
        }
      };
      if (first) deliver(future, NOW);
      deliver([...future, ...events], NOW + 50_000);
      expect(sent.toSorted()).toEqual(events.map(({ metadata }) => metadata.name).toSorted());
      expect(progress.until).toBeLessThanOrEqual(NOW + 50_000);
    }),
    { numRuns: runs(50) },
  );
});

test('a progress that an event of the future wrote does not silence a Notification', () => {
  const recent = [{ at: Date.parse('2099-01-01T00:00:00Z'), id: 'f' }];
  expect(progressOf(progressFields({ until: NOW, recent }) as never, '', NOW).recent).toEqual([]);
});
