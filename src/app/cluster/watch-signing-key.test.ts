import { expect, onTestFinished, test } from 'vitest';
import { Informer } from '../../controller/informer.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { type Secret, secretKind, secretText } from '../../resource/kinds/core/secret.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { watchSigningKey } from './watch-signing-key.ts';

test('one line reports that the key is damaged, missing, or works again, and all open repositories report it at once', async () => {
  const clock = systemClock;
  const registry = new Registry();
  registry.register(new MemoryStorage<Secret>(secretKind, { log: new EventLog({ clock }), clock }) as never);
  const client = new RegistryClient(registry, { name: 'sluice' }, 'controller');
  const key = { namespace: 'sluice-system', name: 'sluice-signing-key' };
  const create = () => client.create(secretKind, { metadata: key, stringData: { identity: 'good' } });
  await create();
  const informer = new Informer<Secret>({ client, kind: secretKind, clock });
  informer.start();
  await informer.whenSynced();
  const lines: string[] = [];
  const woken: string[] = [];
  const watch = watchSigningKey({
    informer,
    signer: () => {
      const [secret] = informer.list();
      if (secret === undefined) throw new SluiceError('Unavailable', 'there is no Secret');
      if (secretText(secret, 'identity') !== 'good') throw new SluiceError('Unavailable', 'the key is damaged');
    },
    openRepositories: () => ['apps', 'web'].map((name) => ({ namespace: 'default', name })),
    wake: ({ name }) => woken.push(name),
    log: (level, message) => lines.push(`${level} ${message}`),
  });
  onTestFinished(async () => {
    watch.stop();
    await informer.stop();
  });
  expect(watch.isUsable()).toBe(true);
  await client.patch(secretKind, key, { metadata: { labels: { a: 'b' } } });
  await client.patch(secretKind, key, { data: { identity: Buffer.from('bad').toString('base64') } });
  await expect.poll(() => lines).toHaveLength(1);
  expect(watch.isUsable()).toBe(false);
  await client.delete(secretKind, key);
  await expect.poll(() => lines).toHaveLength(2);
  await create();
  await expect.poll(() => lines).toHaveLength(3);
  expect(lines).toEqual([
    'warn the key is damaged; no package can be changed until the key can be used',
    'warn there is no Secret; no package can be changed until the key can be used',
    'info statements are signed again',
  ]);
  expect(woken).toEqual(['apps', 'web', 'apps', 'web', 'apps', 'web']);
});
