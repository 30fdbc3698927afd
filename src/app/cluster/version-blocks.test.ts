import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { reserveVersions, VERSIONS_NAME } from './version-blocks.ts';

const NAMESPACE = 'sluice-system';
const NOW_MS = Date.UTC(2026, 0, 1);
let client: Client;
beforeEach(() => {
  const registry = new Registry();
  const storage = new MemoryStorage(configMapKind, { log: new EventLog({ clock: systemClock }), clock: systemClock });
  registry.register(storage as never);
  client = new RegistryClient(registry, { name: 'sluice' }, 'controller');
});

test('versions begin at the present time in microseconds', async () => {
  expect(await reserveVersions(client, NAMESPACE, NOW_MS)).toBe(BigInt(NOW_MS) * 1000n);
});

test('a later term has larger versions, also if its clock is behind', async () => {
  const first = await reserveVersions(client, NAMESPACE, NOW_MS);
  const second = await reserveVersions(client, NAMESPACE, NOW_MS - 3_600_000_000);
  const third = await reserveVersions(client, NAMESPACE, NOW_MS + 1);
  expect(second - first).toBeGreaterThan(1_000_000_000n);
  expect(third - second).toBeGreaterThan(1_000_000_000n);
  const century = await reserveVersions(client, NAMESPACE, NOW_MS + 1000 * 86_400_000);
  expect(century).toBe(BigInt(NOW_MS + 1000 * 86_400_000) * 1000n);
});

test('terms that begin at the same time have different versions', async () => {
  const starts = await Promise.all([1, 2, 3].map(() => reserveVersions(client, NAMESPACE, NOW_MS)));
  expect(new Set(starts).size).toBe(3);
});

test('a damaged ConfigMap is an error that names it', async () => {
  const metadata = { namespace: NAMESPACE, name: VERSIONS_NAME };
  await client.create(configMapKind, { metadata, data: { next: 'soon' } });
  await expect(reserveVersions(client, NAMESPACE, NOW_MS)).rejects.toThrow(/ConfigMap sluice-system\/sluice-resource/);
});
