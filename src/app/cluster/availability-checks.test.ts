import { afterEach, beforeEach, expect, test } from 'vitest';
import { Informer } from '../../controller/informer.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { keepCaBundles } from '../../server/certificates/keep-ca-bundles.ts';
import { renewServingCertificates } from '../../server/certificates/serving-certificates.ts';
import { AvailabilityChecks } from './availability-checks.ts';

const NAME = 'v1.example.com';
const OWN = { namespace: 'sluice-system', name: 'sluice' };

let clock: ManualClock;
let log: EventLog;
let client: RegistryClient;
/** Seconds since the start at which a check was requested. */
let requests: number[];
let errors: unknown[];
let end: () => Promise<void>;

beforeEach(async () => {
  clock = new ManualClock();
  log = new EventLog({ clock });
  const registry = new Registry();
  registry.register(new MemoryStorage(apiServiceKind, { clock, log }) as never);
  client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const certificates = await renewServingCertificates(undefined, { names: ['api.svc'], nowMs: clock.now() });
  [requests, errors] = [[], []];
  const onError = (error: unknown) => errors.push(error);
  const checks = new AvailabilityChecks({ client, clock, onError });
  const kept = keepCaBundles({
    ...{ client, clock, service: OWN, apiService: NAME, webhookConfiguration: 'sluice', onError: () => undefined },
    certificates: () => certificates,
    onApiService: (object) => checks.note(object),
  });
  const startMs = clock.now();
  const informer = new Informer({ client, clock, kind: apiServiceKind });
  informer.addHandler(({ type, object: { metadata } }) => {
    const at = metadata.annotations?.['sluice.dev/check-requested-at'];
    const second = at === undefined ? Number.NaN : (Date.parse(at) - startMs) / 1000;
    if (type !== 'delete' && !Number.isNaN(second) && requests.at(-1) !== second) requests.push(second);
  });
  informer.start();
  end = async () => {
    await Promise.all([checks.stop(), kept.stop(), informer.stop()]);
    log.close();
  };
});
afterEach(() => end());

async function create(service = OWN): Promise<void> {
  await client.create(apiServiceKind, {
    metadata: { name: NAME },
    spec: { group: 'example.com', version: 'v1', service },
  });
}

/** As the kube-apiserver reports its last check. */
async function report(status: 'True' | 'False'): Promise<void> {
  const lastTransitionTime = new Date(clock.now()).toISOString();
  const condition = { type: 'Available', status, reason: 'Checked', message: 'checked', lastTransitionTime };
  const object = await client.get(apiServiceKind, { name: NAME });
  await client.updateStatus(apiServiceKind, { ...object, status: { conditions: [condition] } });
}

test('while the APIService is unavailable, checks are requested with growing delays, and then left to the kube-apiserver', async () => {
  await create();
  await report('False');
  await clock.advanceAsync(600_000);
  expect(requests).toEqual([1, 3, 7, 15, 31]);
  expect(errors).toEqual([]);
});

test('no check is requested while it is available, and a later outage begins with the first delay', async () => {
  await create();
  await report('True');
  await clock.advanceAsync(100_000);
  expect(requests).toEqual([]);
  await report('False');
  await clock.advanceAsync(4000);
  await report('True');
  await clock.advanceAsync(96_000);
  expect(requests).toEqual([101, 103]);
  await report('False');
  await clock.advanceAsync(2000);
  expect(requests).toEqual([101, 103, 201]);
});

test('a state that changes all the time causes no more requests than one outage', async () => {
  await create();
  for (let second = 0; second < 60; second += 1) {
    await report(second % 2 === 0 ? 'False' : 'True');
    await clock.advanceAsync(1000);
  }
  expect(requests.length).toBeGreaterThan(0);
  expect(requests.length).toBeLessThanOrEqual(5);
});

test('an APIService that is deleted, or names the Service of another installation, is left alone', async () => {
  await create();
  await report('False');
  await client.delete(apiServiceKind, { name: NAME });
  await create({ namespace: 'sluice-two', name: 'sluice' });
  await clock.advanceAsync(100_000);
  expect(requests).toEqual([]);
  expect(errors).toEqual([]);
});

test('a request that fails is reported and repeated', async () => {
  await create();
  await report('False');
  const checks = new AvailabilityChecks({
    ...{ clock, client: new RegistryClient(new Registry(), { name: 'test' }, 'controller') },
    onError: (error) => errors.push(error),
  });
  checks.note(await client.get(apiServiceKind, { name: NAME }));
  await clock.advanceAsync(4000);
  await checks.stop();
  await clock.advanceAsync(100_000);
  expect(errors).toHaveLength(2);
});
