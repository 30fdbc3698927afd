import { expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { RegistryClient } from '../resource/client/registry-client.ts';
import { eventKind } from '../resource/kinds/core/event.ts';
import { widgetKind } from '../resource/schema/testing.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { Registry } from '../resource/storage/registry.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import { EventRecorder } from './event-recorder.ts';

function setUp(limit?: number) {
  const clock = new ManualClock(0);
  const registry = new Registry();
  registry.register(new MemoryStorage(eventKind, { clock, log: new EventLog({ clock }) }));
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const errors: unknown[] = [];
  const options = { client, clock, component: 'controller:test', onError: (error: unknown) => errors.push(error) };
  const recorder = () => new EventRecorder(limit === undefined ? options : { ...options, limit });
  const events = async () => (await client.list(eventKind)).items;
  return { clock, client, registry, recorder, events, errors };
}

const object = widgetKind.complete({ metadata: { name: 'web', namespace: 'team', uid: 'u1' }, spec: {} });

test('the same event again is a count, also for another recorder after a restart', async () => {
  const { clock, recorder, events } = setUp();
  const first = recorder();
  first.record(object, 'Normal', 'Proposed', 'all gates are open');
  first.record(object, 'Warning', 'Refused', 'gate x is closed');
  await first.flush();
  clock.advance(10_000);
  const second = recorder();
  second.record(object, 'Normal', 'Proposed', 'all gates are open');
  await second.flush();
  const found = await events();
  expect(found.map(({ reason, count }) => [reason, count]).sort()).toEqual([
    ['Proposed', 2],
    ['Refused', 1],
  ]);
  expect(found.find(({ reason }) => reason === 'Proposed')).toMatchObject({
    metadata: { namespace: 'team' },
    involvedObject: { apiVersion: 'test.sluice.dev/v1', kind: 'Widget', name: 'web', namespace: 'team', uid: 'u1' },
    type: 'Normal',
    message: 'all gates are open',
    firstTimestamp: '1970-01-01T00:00:00.000Z',
    lastTimestamp: '1970-01-01T00:00:10.000Z',
    source: { component: 'controller:test' },
  });
});

test('old events are deleted beyond the limit, also if another client deleted them before', async () => {
  const { client, recorder, events, errors } = setUp(3);
  const recording = recorder();
  for (let index = 0; index < 3; index += 1) recording.record(object, 'Normal', 'Step', `number ${index}`);
  await recording.flush();
  const oldest = (await events()).find(({ message }) => message === 'number 0');
  await client.delete(eventKind, { namespace: 'team', name: oldest?.metadata.name ?? '' });
  for (let index = 3; index < 6; index += 1) recording.record(object, 'Normal', 'Step', `number ${index}`);
  await recording.flush();
  expect((await events()).map(({ message }) => message).sort()).toEqual(['number 3', 'number 4', 'number 5']);
  expect(errors).toEqual([]);
});

test('recording never fails for the caller: errors are reported, a long message is cut, a flood is dropped', async () => {
  const { client, recorder, events, errors } = setUp();
  const recording = recorder();
  recording.record(object, 'Normal', 'Long', 'x'.repeat(5000));
  await recording.flush();
  expect((await events())[0]?.message).toHaveLength(1024);
  for (let index = 0; index < 1001; index += 1) recording.record(object, 'Normal', 'Flood', 'again');
  await recording.flush();
  expect(errors).toHaveLength(1);
  expect((await events()).find(({ reason }) => reason === 'Flood')?.count).toBe(1000);
  const failing = new EventRecorder({
    client: new RegistryClient(new Registry(), client.actor, 'controller'),
    clock: new ManualClock(),
    component: 'controller:test',
    onError: (error) => errors.push(error),
  });
  failing.record(object, 'Normal', 'Lost', 'no storage keeps events');
  await failing.flush();
  expect(errors[1]).toMatchObject({ code: 'Unsupported' });
});

test('texts of users in a message steer no terminal, and reorder nothing', async () => {
  const { recorder, events } = setUp();
  const self = recorder();
  self.record(object, 'Normal', 'GateOpened', 'gate x: \u001b[31mred\u009b1m\u202egnp.exe\u2028end');
  await self.flush();
  expect((await events()).map(({ message }) => message)).toEqual(['gate x: red1mgnp.exeend']);
});
