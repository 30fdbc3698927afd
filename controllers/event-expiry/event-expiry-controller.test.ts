import { expect, test } from 'vitest';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { objectBench } from '../testing-objects.ts';
import { type EventExpiryOptions, eventExpiryController } from './event-expiry-controller.ts';

const MINUTE = 60_000;

function bench(options: Partial<EventExpiryOptions> = {}) {
  const clock = new ManualClock();
  const objects = objectBench(clock);
  const { client, manager } = objects;
  manager.addController(eventExpiryController({ client, clock, ...options }));
  return {
    ...objects,
    clock,
    record: (name: string, lastTimestamp = timestamp(clock.now())) =>
      client.create(eventKind, { metadata: { name }, involvedObject: {}, lastTimestamp }),
    names: async () => (await client.list(eventKind)).items.map(({ metadata }) => metadata.name),
  };
}

test('an event is deleted an hour after it last happened', async () => {
  await using at = bench();
  const { clock, manager, client } = at;
  await at.record('once');
  await at.record('again');
  await manager.start();
  await manager.idle();
  await clock.advanceAsync(30 * MINUTE);
  await client.patch(eventKind, { name: 'again' }, { lastTimestamp: timestamp(clock.now()) });
  await at.record('later');
  await clock.advanceAsync(29 * MINUTE);
  expect(await at.names()).toEqual(['again', 'later', 'once']);
  await clock.advanceAsync(2 * MINUTE);
  expect(await at.names()).toEqual(['again', 'later']);
  await clock.advanceAsync(30 * MINUTE);
  expect(await at.names()).toEqual([]);
  expect(at.errors).toEqual([]);
});

test('an impossible time from a client neither prolongs nor shortens the life of an event', async () => {
  await using at = bench();
  const { clock, manager } = at;
  await at.record('future', '9999-01-01T00:00:00Z');
  await at.record('past', '1970-01-01T00:00:00Z');
  await manager.start();
  await manager.idle();
  await clock.advanceAsync(59 * MINUTE);
  expect(await at.names()).toEqual(['future', 'past']);
  await clock.advanceAsync(2 * MINUTE);
  expect(await at.names()).toEqual([]);
});

test('beyond the limit the oldest events are deleted in one batch', async () => {
  await using at = bench({ limit: 100 });
  const { clock, manager } = at;
  await manager.start();
  for (let index = 0; index < 100; index += 1) {
    await at.record(`e${String(index).padStart(3, '0')}`);
    clock.advance(1000);
  }
  await manager.idle();
  expect(await at.names()).toHaveLength(100);
  await at.record('e100');
  await manager.idle();
  const names = await at.names();
  expect(names).toHaveLength(90);
  expect(names[0]).toBe('e011');
  expect(names.at(-1)).toBe('e100');
});
