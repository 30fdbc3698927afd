import { afterEach, beforeEach, expect, test } from 'vitest';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { type KeptServingCertificates, keepServingCertificates } from './keep-serving-certificates.ts';
import { caBundleOf, renewServingCertificates, type ServingCertificates } from './serving-certificates.ts';
import { writeServingSecret } from './serving-secret.ts';

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
afterEach(async () => {
  await Promise.all(kept.map((one) => one.stop()));
  log.close();
});

async function keep(onChange: (certificates: ServingCertificates) => void = () => undefined) {
  const onError = (error: unknown) => {
    // The clock of these tests jumps over the time within which a watch delivers something.
    if (!isSluiceError(error, 'Timeout')) errors.push(error);
  };
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
  await expect
    .poll(() => {
      clock.advance(30_000);
      return changes;
    })
    .toHaveLength(1);
});

/** Two replicas that have begun to follow the Secret, and what each was notified of. */
async function twoReplicas() {
  const changes: [ServingCertificates[], ServingCertificates[]] = [[], []];
  const replicas = [await keep((one) => changes[0].push(one)), await keep((one) => changes[1].push(one))] as const;
  clock.advance(2000);
  return { changes, replicas, before: replicas[0].current };
}

test('a deleted Secret is issued again at once, and all replicas use the new one', async () => {
  const { changes, replicas, before } = await twoReplicas();
  await client.delete(secretKind, secret);
  await expect.poll(() => changes.map((list) => list.length)).toEqual([1, 1]);
  expect(replicas[0].current).toEqual(replicas[1].current);
  expect(replicas[0].current).not.toEqual(before);
  const { data } = await client.get(secretKind, secret);
  expect(Buffer.from(data?.['ca.crt'] ?? '', 'base64').toString()).toBe(caBundleOf(replicas[0].current));
  expect(errors).toEqual([]);
});

test('certificates that another process writes are used by all replicas at once', async () => {
  const { changes } = await twoReplicas();
  const next = await renewServingCertificates(undefined, { names: ['api.svc'], nowMs: clock.now() });
  await client.patch(secretKind, secret, { data: writeServingSecret(next) });
  await expect.poll(() => changes).toEqual([[next], [next]]);
  expect(errors).toEqual([]);
});

test.each([
  ['no PEM', { 'tls.crt': 'nonsense' }, /no certificates of a server: .*; Sluice issues new ones/],
  ['no key', { 'tls.key': '' }, /tls\.crt, tls\.key, ca\.crt and ca\.key are required; Sluice issues/],
  ['no authority', { 'ca.crt': 'nonsense' }, /ca\.crt contains no certificate in PEM; Sluice issues/],
  ['the key of another certificate', 'tls.key', /tls\.key is not the key of tls\.crt; Sluice issues/],
  ['a server certificate as authority', 'ca.crt', /ca\.crt contains a certificate that is not one of an authority/],
] as const)('a Secret with %s is reported and replaced at once', async (_, damage, problem) => {
  const { changes, replicas, before } = await twoReplicas();
  const other = writeServingSecret(await renewServingCertificates(undefined, { names: [], nowMs: clock.now() }));
  const texts =
    damage === 'tls.key'
      ? { 'tls.key': other['tls.key'] }
      : damage === 'ca.crt'
        ? { 'ca.crt': other['tls.crt'] }
        : Object.fromEntries(
            Object.entries(damage).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
          );
  await client.patch(secretKind, secret, { data: texts as Record<string, string> });
  await expect.poll(() => changes.map((list) => list.length)).toEqual([1, 1]);
  expect(replicas[0].current).toEqual(replicas[1].current);
  expect(replicas[0].current).not.toEqual(before);
  for (const error of errors) expect(String(error)).toMatch(problem);
  expect(errors.length).toBeGreaterThan(0);
});

test('a damaged Secret that cannot be changed is reported with what to do, and the certificates stay in use', async () => {
  const { changes, replicas, before } = await twoReplicas();
  const update = client.update.bind(client);
  client.update = () => Promise.reject(new SluiceError('InvalidInput', 'data: field is immutable'));
  const found = await client.get(secretKind, secret);
  await update(secretKind, { ...found, data: { ...found.data, 'tls.crt': 'bm9uc2Vuc2U=' } });
  await expect
    .poll(() => errors.map(String).join())
    .toMatch(/field is immutable; delete it, and Sluice creates it again/);
  expect(replicas[0].current).toBe(before);
  client.update = update;
  await client.delete(secretKind, secret);
  await expect
    .poll(() => {
      clock.advance(1000);
      return changes.map((list) => list.length);
    })
    .toEqual([1, 1]);
});

test('another writer that undoes each write causes one write in a second', async () => {
  await keep();
  clock.advance(2000);
  const damage = async () => {
    const found = await client.get(secretKind, secret);
    await update(secretKind, { ...found, data: { ...found.data, 'tls.crt': 'bm9uc2Vuc2U=' } });
  };
  let writes = 0;
  const update = client.update.bind(client);
  client.update = async (...call: Parameters<typeof update>) => {
    const updated = await update(...call);
    writes += 1;
    await damage();
    return updated as never;
  };
  await damage();
  await expect.poll(() => writes).toBe(1);
  const settle = async () => {
    for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await settle();
  expect(writes).toBe(1);
  clock.advance(1000);
  await expect.poll(() => writes).toBe(2);
});
