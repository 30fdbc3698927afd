import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { validatingWebhookConfigurationKind } from '../../resource/kinds/admissionregistration/validating-webhook-configuration.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { keepCaBundles } from './keep-ca-bundles.ts';
import { publishCaBundle, publishWebhookCaBundle } from './publish-ca-bundle.ts';
import { caBundleOf, renewServingCertificates, type ServingCertificates } from './serving-certificates.ts';

const API_SERVICE = 'v1.example.com';
const WEBHOOK = 'sluice';
const OWN = { namespace: 'sluice-system', name: 'sluice' };
const OTHER = { namespace: 'sluice-two', name: 'sluice' };
const CERT_MANAGER = { 'cert-manager.io/inject-ca-from': 'sluice-system/sluice' };

let log: EventLog;
let client: RegistryClient;
let certificates: ServingCertificates;

beforeEach(async () => {
  const clock = systemClock;
  log = new EventLog({ clock });
  const registry = new Registry();
  registry.register(new MemoryStorage(apiServiceKind, { clock, log }) as never);
  registry.register(new MemoryStorage(validatingWebhookConfigurationKind, { clock, log }) as never);
  client = new RegistryClient(registry, { name: 'test' }, 'controller');
  certificates = await issued();
});
afterEach(() => log.close());

function issued(): Promise<ServingCertificates> {
  return renewServingCertificates(undefined, { names: ['api.svc'], nowMs: Date.now() });
}

function createApiService(annotations: Record<string, string> = {}, service = OWN) {
  const metadata = { name: API_SERVICE, annotations };
  return client.create(apiServiceKind, { metadata, spec: { group: 'example.com', version: 'v1', service } });
}

function createWebhooks(annotations: Record<string, string> = {}, service = OWN) {
  const clientConfig = { service: { ...service, path: '/admission/validate' } };
  const webhooks = ['a.sluice.dev', 'b.sluice.dev'].map((name) => ({ name, clientConfig, failurePolicy: 'Fail' }));
  return client.create(validatingWebhookConfigurationKind, { metadata: { name: WEBHOOK, annotations }, webhooks });
}

/** The authorities in each of the two objects. */
async function published(): Promise<string[]> {
  const { spec } = await client.get(apiServiceKind, { name: API_SERVICE });
  const { webhooks } = await client.get(validatingWebhookConfigurationKind, { name: WEBHOOK });
  return [spec.caBundle, ...(webhooks ?? []).map(({ clientConfig }) => clientConfig.caBundle)].map((text) =>
    Buffer.from(text ?? '', 'base64').toString(),
  );
}

function threeTimes(text: string): string[] {
  return [text, text, text];
}

test('an APIService and a webhook configuration get the authorities to trust, once', async () => {
  await expect(publishCaBundle(client, API_SERVICE, OWN, certificates)).rejects.toMatchObject({ code: 'NotFound' });
  await publishWebhookCaBundle(client, WEBHOOK, OWN, certificates);
  await createApiService();
  const { webhooks = [] } = await createWebhooks();
  await publishCaBundle(client, API_SERVICE, OWN, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, OWN, certificates);
  expect(await published()).toEqual(threeTimes(caBundleOf(certificates)));
  const [api, configuration] = await both();
  expect(api.spec.group).toBe('example.com');
  expect(configuration.webhooks).toMatchObject(webhooks as object[]);
  await publishCaBundle(client, API_SERVICE, OWN, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, OWN, certificates);
  expect(await both()).toEqual([api, configuration]);
});

function both() {
  return Promise.all([
    client.get(apiServiceKind, { name: API_SERVICE }),
    client.get(validatingWebhookConfigurationKind, { name: WEBHOOK }),
  ] as const);
}

test('objects that cert-manager keeps stay as they are', async () => {
  await createApiService(CERT_MANAGER);
  await createWebhooks(CERT_MANAGER);
  await publishCaBundle(client, API_SERVICE, OWN, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, OWN, certificates);
  expect(await published()).toEqual(threeTimes(''));
});

test('they are kept up to date: when they are installed later, applied again, and when the certificates change', async () => {
  const errors: unknown[] = [];
  const kept = keepCaBundles({
    ...{ client, clock: systemClock, service: OWN, apiService: API_SERVICE, webhookConfiguration: WEBHOOK },
    certificates: () => certificates,
    onError: (error) => errors.push(error),
  });
  try {
    await kept.whenSynced();
    kept.publish();
    await createApiService();
    await createWebhooks();
    await expect.poll(published).toEqual(threeTimes(caBundleOf(certificates)));
    await client.patch(apiServiceKind, { name: API_SERVICE }, { spec: { caBundle: null } });
    await client.delete(validatingWebhookConfigurationKind, { name: WEBHOOK });
    await createWebhooks();
    await expect.poll(published).toEqual(threeTimes(caBundleOf(certificates)));
    certificates = await issued();
    kept.publish();
    await expect.poll(published).toEqual(threeTimes(caBundleOf(certificates)));
  } finally {
    await kept.stop();
  }
  expect(errors).toEqual([]);
});

test('objects that name the Service of another installation stay as they are, which is reported once', async () => {
  const clock = new ManualClock();
  await createApiService({}, OTHER);
  await createWebhooks({}, OTHER);
  const errors: string[] = [];
  const kept = keepCaBundles({
    ...{ client, clock, service: OWN, apiService: API_SERVICE, webhookConfiguration: WEBHOOK },
    certificates: () => certificates,
    onError: (error) => errors.push(String(error)),
  });
  await clock.advanceAsync(120_000);
  kept.publish();
  await clock.advanceAsync(0);
  expect(await published()).toEqual(threeTimes(''));
  expect(errors.sort()).toEqual([
    expect.stringContaining('APIService v1.example.com names Service sluice-two/sluice, not sluice-system/sluice'),
    expect.stringContaining('ValidatingWebhookConfiguration sluice names Service sluice-two/sluice'),
  ]);
  // The administrator has decided.
  await client.patch(apiServiceKind, { name: API_SERVICE }, { spec: { service: { ...OWN } } });
  await clock.advanceAsync(60_000);
  expect((await published())[0]).toBe(caBundleOf(certificates));
  await kept.stop();
});

test('an APIService that is missing for long is reported', async () => {
  const clock = new ManualClock();
  const errors: string[] = [];
  const kept = keepCaBundles({
    ...{ client, clock, service: OWN, apiService: API_SERVICE, webhookConfiguration: WEBHOOK },
    certificates: () => certificates,
    onError: (error) => errors.push(String(error)),
  });
  await clock.advanceAsync(29_000);
  await createApiService();
  await clock.advanceAsync(60_000);
  expect(errors).toEqual([]);
  await client.delete(apiServiceKind, { name: API_SERVICE });
  await clock.advanceAsync(60_000);
  expect(errors).toEqual([
    expect.stringContaining('there is no APIService v1.example.com, so that the cluster sends no'),
  ]);
  await kept.stop();
});

test('only the webhooks that name the own Service are written', async () => {
  const webhooks = [OTHER, OWN].map((service, at) => ({ name: `${at}.sluice.dev`, clientConfig: { service } }));
  await client.create(validatingWebhookConfigurationKind, { metadata: { name: WEBHOOK }, webhooks });
  await publishWebhookCaBundle(client, WEBHOOK, OWN, certificates);
  const { webhooks: written } = await client.get(validatingWebhookConfigurationKind, { name: WEBHOOK });
  expect(written?.map(({ clientConfig }) => typeof clientConfig.caBundle)).toEqual(['undefined', 'string']);
});

test('another writer that undoes each write is reported, and slows the writes down', async () => {
  const clock = new ManualClock();
  await createApiService();
  const errors: string[] = [];
  const kept = keepCaBundles({
    ...{ client, clock, service: OWN, apiService: API_SERVICE, webhookConfiguration: WEBHOOK },
    certificates: () => certificates,
    onError: (error) => errors.push(String(error)),
  });
  let undone = 0;
  for (let second = 0; second < 100; second += 1) {
    await clock.advanceAsync(1000);
    const { spec } = await client.get(apiServiceKind, { name: API_SERVICE });
    if (!spec.caBundle) continue;
    undone += 1;
    await client.patch(apiServiceKind, { name: API_SERVICE }, { spec: { caBundle: null } });
  }
  expect(undone).toBeLessThan(15);
  expect(errors).toEqual([expect.stringContaining('another program writes the authorities of APIService')]);
  await kept.stop();
});
