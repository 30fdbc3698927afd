import { expect, test } from 'vitest';
import { timestamp } from '../../src/foundation/clock.ts';
import { ManualClock } from '../../src/foundation/manual-clock.ts';
import { eventKind } from '../../src/resource/kinds/event.ts';
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
    tell: (name: string, lastTimestamp = timestamp(clock.now())) =>
      client.create(eventKind, { metadata: { name }, involvedObject: {}, lastTimestamp }),
    names: async () => (await client.list(eventKind)).items.map(({ metadata }) => metadata.name),
  };
}

test('an event goes an hour after it last happened', async () => {
  await using at = bench();
  const { clock, manager, client } = at;
  await at.tell('once');
  await at.tell('again');
  await manager.start();
  await manager.idle();
  await clock.advanceAsync(30 * MINUTE);
  await client.patch(eventKind, { name: 'again' }, { lastTimestamp: timestamp(clock.now()) });
  await at.tell('later');
  await clock.advanceAsync(29 * MINUTE);
  expect(await at.names()).toEqual(['again', 'later', 'once']);
  await clock.advanceAsync(2 * MINUTE);
  expect(await at.names()).toEqual(['again', 'later']);
  await clock.advanceAsync(30 * MINUTE);
  expect(await at.names()).toEqual([]);
  expect(at.errors).toEqual([]);
});

test('what a client says cannot be true makes an event neither last nor go before its time', async () => {
  await using at = bench();
  const { clock, manager } = at;
  await at.tell('future', '9999-01-01T00:00:00Z');
  await at.tell('past', '1970-01-01T00:00:00Z');
  await manager.start();
  await manager.idle();
  await clock.advanceAsync(59 * MINUTE);
  expect(await at.names()).toEqual(['future', 'past']);
  await clock.advanceAsync(2 * MINUTE);
  expect(await at.names()).toEqual([]);
});

test('where there are too many the oldest go, at once and not event by event', async () => {
  await using at = bench({ limit: 100 });
  const { clock, manager } = at;
  await manager.start();
  for (let index = 0; index < 100; index += 1) {
    await at.tell(`e${String(index).padStart(3, '0')}`);
    clock.advance(1000);
  }
  await manager.idle();
  expect(await at.names()).toHaveLength(100);
  await at.tell('e100');
  await manager.idle();
  const names = await at.names();
  expect(names).toHaveLength(90);
  expect(names[0]).toBe('e011');
  expect(names.at(-1)).toBe('e100');
});
