import { afterEach, expect, inject, test } from 'vitest';
import { Informer } from '../../src/controller/informer.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { ClusterStorage } from '../../src/kubernetes/storage/cluster-storage.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import type { Widget } from '../../src/resource/schema/testing.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { startTcpRelay, type TcpRelay } from './support/tcp-relay.ts';
import { useWidgets } from './support/widgets.ts';

/** With it the backoff of the informer takes milliseconds. */
const fastClock: Clock = {
  ...systemClock,
  schedule: (delay, action) => systemClock.schedule(delay / 20, action),
};

const widgets = useWidgets();
const { kind, sample } = widgets;
const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

/** An informer of a registry in which the widgets are in the cluster, behind a relay that can break its connections. */
async function follow(): Promise<{ informer: Informer<Widget>; relay: TcpRelay; errors: unknown[] }> {
  const { server } = await findClusterAccess({ kubeconfig: inject('kubeconfig') });
  const relay = await startTcpRelay(Number(new URL(server).port));
  open.push(relay);
  const client = await widgets.connect({ server: `https://127.0.0.1:${relay.port}` });
  const registry = new Registry();
  registry.register(new ClusterStorage(kind, client));
  const errors: unknown[] = [];
  const informer = new Informer<Widget>({
    client: new RegistryClient(registry, { name: 'test' }, 'controller'),
    kind,
    clock: fastClock,
    onError: (error) => errors.push(error),
  });
  open.push({ [Symbol.asyncDispose]: () => informer.stop() });
  informer.start();
  await informer.whenSynced();
  return { informer, relay, errors };
}

const names = (informer: Informer<Widget>) =>
  informer
    .list()
    .map(({ metadata }) => metadata.name)
    .sort();

test('an informer follows the objects of a cluster as those of its own process', async () => {
  await widgets.client.create(kind, sample('a'));
  const { informer, errors } = await follow();
  expect(names(informer)).toEqual(['a']);
  const made = await widgets.client.create(kind, sample('b'));
  await informer.refresh();
  expect(names(informer)).toEqual(['a', 'b']);
  await widgets.client.update(kind, { ...made, spec: { size: 7 } });
  await expect.poll(() => informer.get(made.metadata)?.spec.size).toBe(7);
  await widgets.client.delete(kind, { namespace: 'default', name: 'a' });
  await expect.poll(() => names(informer)).toEqual(['b']);
  expect(await informer.isCurrent()).toBe(true);
  expect(errors).toEqual([]);
});

test('an informer misses nothing while its connections break', async () => {
  await widgets.deleteAll();
  const { informer, relay, errors } = await follow();
  for (let round = 0; round < 5; round += 1) {
    relay.cut();
    await widgets.client.create(kind, sample(`w${round}`));
    if (round > 0) await widgets.client.delete(kind, { namespace: 'default', name: `w${round - 1}` });
    await expect.poll(() => names(informer)).toEqual([`w${round}`]);
  }
  relay.refuses = true;
  relay.cut();
  await widgets.client.create(kind, sample('during'));
  const { length } = errors;
  await expect.poll(() => errors.length).toBeGreaterThan(length + 2);
  expect(names(informer)).toEqual(['w4']);
  relay.refuses = false;
  await expect.poll(() => names(informer)).toEqual(['during', 'w4']);
});
