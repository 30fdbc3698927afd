import { expect, test } from 'vitest';
import type { Event } from '../../../resource/kinds/core/event.ts';
import { narrateEvent, repeatedWarnings } from './narrate-event.ts';

const NOW = Date.parse('2030-01-01T00:00:00Z');

test('a warning of an earlier process is no change when it is repeated after a start, and is one later', () => {
  const isRepeated = repeatedWarnings(NOW);
  const event = (name: string, firstTimestamp: string, type = 'Warning') =>
    ({ metadata: { namespace: 'default', name }, type, firstTimestamp }) as Event;
  const old = event('a', '2029-12-31T00:00:00Z');
  expect([isRepeated(old), isRepeated(old)]).toEqual([true, false]);
  expect(isRepeated(event('b', '2030-01-01T00:00:01Z'))).toBe(false);
  expect(isRepeated(event('c', '2029-12-31T00:00:00Z', 'Normal'))).toBe(false);
});

test('in a cluster a line names the object with its namespace', () => {
  const involvedObject = { kind: 'Repository', namespace: 'team-a', name: 'apps' };
  const event = { involvedObject, type: 'Warning', reason: 'Error', message: 'm' } as unknown as Event;
  expect(narrateEvent(event, NOW, true)?.subject).toBe('team-a/apps');
  expect(narrateEvent(event, NOW)?.subject).toBe('apps');
});
