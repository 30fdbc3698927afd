import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import type { ClusterTrust } from './cluster-trust.ts';
import { followClusterTrust } from './follow-cluster-trust.ts';
import { issue, trustData } from './testing-cluster.ts';

test('the trust follows the ConfigMap, and a damaged or deleted one leaves the last trust in force', async () => {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  registry.register(new MemoryStorage(configMapKind, { clock: systemClock, log }));
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const changes: ClusterTrust[] = [];
  const errors: unknown[] = [];
  const trust = followClusterTrust({
    ...{ client, clock: systemClock },
    onChange: (changed) => changes.push(changed),
    onError: (error) => errors.push(error),
  });
  onTestFinished(async () => {
    await trust.stop();
    log.close();
  });
  await trust.whenSynced();
  expect(trust.current.requestHeader).toBeUndefined();

  const [proxy, next] = [
    (await issue({ commonName: 'proxy', usage: 'authority' })).certificate,
    (await issue({ commonName: 'next', usage: 'authority' })).certificate,
  ];
  const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
  await client.create(configMapKind, { metadata: { ...key, name: 'another' }, data: trustData({ client: next }) });
  await client.create(configMapKind, { metadata: key, data: trustData({ proxy }) });
  const authorities = () => trust.current.requestHeader?.authorities.pem;
  await expect.poll(authorities).toBe(proxy);
  await client.patch(configMapKind, key, { data: trustData({ proxy: proxy + next }) });
  await expect.poll(authorities).toBe(proxy + next);
  expect(changes.at(-1)).toBe(trust.current);
  // What is not part of the trust changes nothing.
  await client.patch(configMapKind, key, { metadata: { labels: { a: 'b' } } });
  expect(errors).toEqual([]);

  await client.patch(configMapKind, key, { data: { 'requestheader-allowed-names': 'front-proxy-client' } });
  await expect.poll(() => errors).toHaveLength(1);
  expect(String(errors[0])).toContain(
    'cannot read ConfigMap kube-system/extension-apiserver-authentication: requestheader-allowed-names',
  );
  await client.delete(configMapKind, key);
  await client.create(configMapKind, { metadata: key, data: trustData({ proxy: next }) });
  await expect.poll(authorities).toBe(next);
  expect(changes).toHaveLength(3);
  // The authority of users is that of the aggregator too, and any name is allowed.
  const unsafe = trustData({ proxy: next, client: next }, { 'requestheader-allowed-names': '' });
  await client.patch(configMapKind, key, { data: unsafe });
  await expect.poll(() => trust.current.requestHeader).toBeUndefined();
  expect(String(errors[1])).toContain('the aggregator cannot be distinguished from users');
});
