import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
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

function createApiService(annotations: Record<string, string> = {}) {
  const metadata = { name: API_SERVICE, annotations };
  return client.create(apiServiceKind, { metadata, spec: { group: 'example.com', version: 'v1' } });
}

function createWebhooks(annotations: Record<string, string> = {}) {
  const clientConfig = { service: { namespace: 'sluice-system', name: 'sluice', path: '/admission/validate' } };
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
  await expect(publishCaBundle(client, API_SERVICE, certificates)).rejects.toMatchObject({ code: 'NotFound' });
  await publishWebhookCaBundle(client, WEBHOOK, certificates);
  await createApiService();
  const { webhooks = [] } = await createWebhooks();
  await publishCaBundle(client, API_SERVICE, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, certificates);
  expect(await published()).toEqual(threeTimes(caBundleOf(certificates)));
  const [api, configuration] = await both();
  expect(api.spec.group).toBe('example.com');
  expect(configuration.webhooks).toMatchObject(webhooks as object[]);
  await publishCaBundle(client, API_SERVICE, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, certificates);
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
  await publishCaBundle(client, API_SERVICE, certificates);
  await publishWebhookCaBundle(client, WEBHOOK, certificates);
  expect(await published()).toEqual(threeTimes(''));
});

test('they are kept up to date: when they are installed later, applied again, and when the certificates change', async () => {
  const errors: unknown[] = [];
  const kept = keepCaBundles({
    ...{ client, clock: systemClock, apiService: API_SERVICE, webhookConfiguration: WEBHOOK },
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
