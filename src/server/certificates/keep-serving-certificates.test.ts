import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { type KeptServingCertificates, keepServingCertificates } from './keep-serving-certificates.ts';
import { caBundleOf, type ServingCertificates } from './serving-certificates.ts';

const DAY_MS = 86_400_000;
const secret = { namespace: 'sluice-system', name: 'sluice-serving' };

let clock: ManualClock;
let log: EventLog;
let client: RegistryClient;
let kept: KeptServingCertificates[];
let errors: unknown[];
beforeEach(() => {
  clock = new ManualClock();
  log = new EventLog({ clock });
  const registry = new Registry();
  registry.register(new MemoryStorage(secretKind, { clock, log }));
  client = new RegistryClient(registry, { name: 'test' }, 'controller');
  kept = [];
  errors = [];
});
afterEach(() => {
  for (const one of kept) one.stop();
  log.close();
});

async function keep(onChange: (certificates: ServingCertificates) => void = () => undefined) {
  const onError = (error: unknown) => errors.push(error);
  const one = await keepServingCertificates({ client, secret, names: ['api.svc'], clock, onChange, onError });
  kept.push(one);
  return one;
}

test('replicas that start together share the certificates of one of them', async () => {
  const replicas = await Promise.all([keep(), keep(), keep()]);
  const [first] = replicas;
  for (const { current } of replicas) expect(current).toEqual(first?.current);
  const { type, data } = await client.get(secretKind, secret);
  expect(type).toBe('kubernetes.io/tls');
  expect(Object.keys(data ?? {}).sort()).toEqual(['ca.crt', 'ca.key', 'tls.crt', 'tls.key']);
  expect(Buffer.from(data?.['ca.crt'] ?? '', 'base64').toString()).toBe(caBundleOf(first?.current as never));
  expect((await keep()).current).toEqual(first?.current);
  expect(errors).toEqual([]);
});

test('what is due is renewed, and reaches every replica', async () => {
  const changes: [ServingCertificates[], ServingCertificates[]] = [[], []];
  await keep((changed) => changes[0].push(changed));
  await keep((changed) => changes[1].push(changed));
  clock.advance(61 * DAY_MS);
  await expect.poll(() => changes.map((list) => list.length)).toEqual([1, 1]);
  expect(changes[0]).toEqual(changes[1]);
  expect(kept[0]?.current).toBe(changes[0][0]);
});

test('a Secret that cannot be read is reported and replaced, an empty one is filled', async () => {
  await client.create(secretKind, { metadata: secret, stringData: { 'tls.crt': 'nonsense' } });
  const { current } = await keep();
  expect(errors.map(String)).toEqual([expect.stringContaining('Secret sluice-system/sluice-serving contains no')]);
  expect((await keep()).current).toEqual(current);
  await client.delete(secretKind, secret);
  await client.create(secretKind, { metadata: secret });
  expect((await keep()).current).not.toEqual(current);
  expect(errors).toHaveLength(1);
});

test('a failure is reported, leaves the certificates in use, and passes', async () => {
  const changes: ServingCertificates[] = [];
  const { current } = await keep((changed) => changes.push(changed));
  const find = client.find.bind(client);
  client.find = () => Promise.reject(new Error('the cluster does not respond'));
  clock.advance(61 * DAY_MS);
  await expect.poll(() => errors).toHaveLength(1);
  expect(kept[0]?.current).toBe(current);
  client.find = find;
  await expect.poll(() => clock.pending).toBe(1);
  clock.advance(30_000);
  await expect.poll(() => changes).toHaveLength(1);
});
