import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { renewVersions, reserveVersions, VERSIONS_NAME } from './version-blocks.ts';

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
  expect(second - first).toBeGreaterThan(10_000_000n);
  expect(third - second).toBeGreaterThan(10_000_000n);
  const century = await reserveVersions(client, NAMESPACE, NOW_MS + 1000 * 86_400_000);
  expect(century).toBe(BigInt(NOW_MS + 1000 * 86_400_000) * 1000n);
});

test('terms that begin at the same time have different versions', async () => {
  const starts = await Promise.all([1, 2, 3].map(() => reserveVersions(client, NAMESPACE, NOW_MS)));
  expect(new Set(starts).size).toBe(3);
});

test('versions do not run ahead of the clock where the leader changes every minute', async () => {
  for (let minute = 0; minute < 10; minute += 1) {
    const nowMs = NOW_MS + minute * 60_000;
    expect(await reserveVersions(client, NAMESPACE, nowMs)).toBe(BigInt(nowMs) * 1000n);
  }
});

test('versions are at least as large as the caller requires, also if the ConfigMap was lost', async () => {
  const lowest = BigInt(NOW_MS + 86_400_000) * 1000n;
  expect(await reserveVersions(client, NAMESPACE, NOW_MS, lowest)).toBe(lowest);
});

test('a log that has used half of its block continues in another one, which no other leader has', async () => {
  const clock = new ManualClock(NOW_MS);
  const start = await reserveVersions(client, NAMESPACE, NOW_MS);
  const log = new EventLog({ clock, start });
  const stop = new AbortController();
  const warn = () => expect.unreachable();
  const renewal = renewVersions({ client, clock, namespace: NAMESPACE, log, signal: stop.signal, warn });
  log.skipTo(start + 1_000_000n);
  await clock.advanceAsync(10_000);
  expect(log.version).toBe(String(start + 1_000_000n));
  const other = await reserveVersions(client, NAMESPACE, NOW_MS);
  log.skipTo(start + 9_000_000n);
  await clock.advanceAsync(10_000);
  expect(BigInt(log.version)).toBeGreaterThan(other + 16_000_000n);
  expect(await reserveVersions(client, NAMESPACE, NOW_MS)).toBeGreaterThan(BigInt(log.version) + 16_000_000n);
  stop.abort();
  await clock.advanceAsync(10_000);
  await renewal;
});

test('a damaged ConfigMap is an error that names it', async () => {
  const metadata = { namespace: NAMESPACE, name: VERSIONS_NAME };
  await client.create(configMapKind, { metadata, data: { next: 'soon' } });
  await expect(reserveVersions(client, NAMESPACE, NOW_MS)).rejects.toThrow(/ConfigMap sluice-system\/sluice-resource/);
});
