import { expect, test } from 'vitest';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { RegistryClient } from '../resource/client/registry-client.ts';
import { repositoryKind } from '../resource/kinds/porch/repository.ts';
import { MemoryStorage } from '../resource/storage/memory/memory-storage.ts';
import { Registry } from '../resource/storage/registry.ts';
import { EventLog } from '../resource/watch/event-log.ts';
import { writeStatus } from './write-status.ts';

const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '' } as const;

async function setUp() {
  const clock = new ManualClock(0);
  const log = new EventLog({ clock });
  const registry = new Registry();
  registry.register(new MemoryStorage(repositoryKind, { clock, log }));
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const made = await client.create(repositoryKind, {
    metadata: { name: 'blue' },
    spec: { git: { repo: '/srv/blue' } },
  });
  return { log, client, made };
}

test('sets conditions and fields, keeps the others, and writes only what differs', async () => {
  const { log, client, made } = await setUp();
  const first = await writeStatus(client, repositoryKind, made, { conditions: [ready], now: 0 });
  const second = await writeStatus(client, repositoryKind, first, { fields: { packageCount: 3 }, now: 5000 });
  expect(second.status).toEqual({
    conditions: [{ ...ready, lastTransitionTime: '1970-01-01T00:00:00Z', observedGeneration: 1 }],
    packageCount: 3,
  });
  const version = log.version;
  const again = await writeStatus(client, repositoryKind, second, {
    conditions: [ready],
    fields: { packageCount: 3 },
    now: 9,
  });
  expect(again).toBe(second);
  expect(log.version).toBe(version);
});

test('a spec that changed meanwhile is no conflict, another object of the name is', async () => {
  const { client, made } = await setUp();
  await client.patch(repositoryKind, { name: 'blue' }, { spec: { description: 'changed' } });
  const written = await writeStatus(client, repositoryKind, made, { conditions: [ready], now: 0 });
  expect(written).toMatchObject({
    metadata: { generation: 2 },
    spec: { description: 'changed' },
    status: { conditions: [{ observedGeneration: 1 }] },
  });
  await client.delete(repositoryKind, { name: 'blue' });
  await client.create(repositoryKind, { metadata: { name: 'blue' }, spec: { git: { repo: '/srv/other' } } });
  const late = writeStatus(client, repositoryKind, written, { fields: { packageCount: 1 }, now: 0 });
  await expect(late).rejects.toMatchObject({ code: 'Conflict' });
});
