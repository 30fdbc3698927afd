import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Kind } from '../../schema/kind.ts';
import { type Event, eventKind } from '../core/event.ts';
import { eventV1Kind, eventV1Translation } from './event-v1.ts';

const { fromStored, toStored } = eventV1Translation;
const time = fc.constantFrom('2026-01-02T03:04:05Z', '2026-01-02T03:04:05.123456Z', null);
const microTime = fc.constantFrom('2026-01-02T03:04:05.123456Z', '2026-01-02T03:04:05.000000+02:00', null);
const reference = fc.record(
  { apiVersion: fc.string(), kind: fc.string(), name: fc.string(), uid: fc.string(), fieldPath: fc.string() },
  { requiredKeys: [] },
);
const event = fc.record(
  {
    metadata: fc.record({ name: fc.constantFrom('a', 'b'), namespace: fc.constant('default') }),
    involvedObject: reference,
    type: fc.constantFrom('Normal', 'Warning'),
    ...{ reason: fc.string(), message: fc.string(), action: fc.string(), count: fc.nat(1000) },
    ...{ firstTimestamp: time, lastTimestamp: time, eventTime: microTime },
    series: fc.option(fc.record({ count: fc.nat(1000), lastObservedTime: microTime }, { requiredKeys: [] })),
    related: fc.option(reference),
    source: fc.record({ component: fc.string(), host: fc.string() }, { requiredKeys: [] }),
    ...{ reportingComponent: fc.string(), reportingInstance: fc.string() },
  },
  { requiredKeys: ['metadata', 'involvedObject'] },
);

test('an event that is shown, read and kept again is the same, and so is its row', () => {
  fc.assert(
    fc.property(event, (written) => {
      const core = eventKind.complete(written as Parameters<typeof eventKind.complete>[0]);
      const { object: shown, unknownFields } = eventV1Kind.parse(fromStored(core));
      expect(unknownFields).toEqual([]);
      expect(toStored(shown)).toEqual(core);
      expect(row(eventV1Kind as unknown as Kind, shown)).toEqual(row(eventKind as unknown as Kind, core));
    }),
    { numRuns: runs(100) },
  );
});

test('every selectable field of a core event is one of the newer event', () => {
  const paths = eventV1Kind.selectableFields.map(({ path }) => eventV1Translation.storedPath?.(path));
  expect(paths).toEqual(eventKind.selectableFields.map(({ path }) => path));
});

test('objects of the recorder of client-go', () => {
  const metadata = { name: 'web.17a8b9c0d1e2f3a4', namespace: 'default', creationTimestamp: null };
  const regarding = {
    kind: 'PackageRevision',
    namespace: 'default',
    name: 'web',
    apiVersion: 'porch.kpt.dev/v1alpha1',
  };
  const content = { reason: 'Checked', action: 'Check', note: 'the gate is open', type: 'Normal' };
  const reporter = { reportingController: 'gatekeeper', reportingInstance: 'gatekeeper-host' };
  const old = {
    deprecatedSource: {},
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
    deprecatedCount: 0,
  };
  const time = { eventTime: '2026-01-02T03:04:05.123456Z', series: null };
  const { object, unknownFields } = eventV1Kind.parse({
    metadata,
    regarding,
    ...content,
    ...reporter,
    ...time,
    ...old,
  });
  expect(unknownFields).toEqual([]);
  const core: Event = toStored(object);
  expect(core).toMatchObject({ involvedObject: regarding, message: 'the gate is open', eventTime: time.eventTime });
  expect(core).toMatchObject({ reportingComponent: 'gatekeeper', source: {} });
  expect(eventV1Kind.complete({ metadata: { name: 'a' } })).toMatchObject({ regarding: {}, note: '', type: 'Normal' });
  const elsewhere = { metadata, regarding: { ...regarding, namespace: 'other' } };
  expect(() => eventV1Kind.parse(elsewhere)).toThrow('regarding.namespace');
});

function row(kind: Kind, object: unknown): unknown[] {
  return kind.printerColumns.map(({ name, type, priority, value }) => [name, type, priority, value(object as never)]);
}
