import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { publishCaBundle } from './publish-ca-bundle.ts';
import { caBundleOf, renewServingCertificates } from './serving-certificates.ts';

test('an APIService gets the authorities to trust, once', async () => {
  const clock = new ManualClock();
  const registry = new Registry();
  registry.register(new MemoryStorage(apiServiceKind, { clock, log: new EventLog({ clock }) }));
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const name = 'v1.example.com';
  const certificates = await renewServingCertificates(undefined, { names: ['api.svc'], nowMs: clock.now() });
  await expect(publishCaBundle(client, name, certificates)).rejects.toMatchObject({ code: 'NotFound' });
  await client.create(apiServiceKind, { metadata: { name }, spec: { group: 'example.com', version: 'v1' } });
  await publishCaBundle(client, name, certificates);
  const published = await client.get(apiServiceKind, { name });
  expect(Buffer.from(published.spec.caBundle ?? '', 'base64').toString()).toBe(caBundleOf(certificates));
  expect(published.spec.group).toBe('example.com');
  await publishCaBundle(client, name, certificates);
  expect(await client.get(apiServiceKind, { name })).toEqual(published);
});
