import { afterAll, beforeEach, expect, inject, test } from 'vitest';
import { Informer } from '../../src/controller/informer.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../src/kubernetes/http-client.ts';
import { ClusterStorage } from '../../src/kubernetes/storage/cluster-storage.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import type { Storage } from '../../src/resource/storage/storage.ts';
import { beforeAllServed } from '../conformance/support/place.ts';
import { ControlPlane } from './support/control-plane.ts';
import { clusterPrograms } from './support/programs.ts';

const context = { actor: { name: 'test' }, face: 'controller' } as const;
const open: (() => Promise<void>)[] = [];

/** A control plane of its own, which these tests break. */
let plane: ControlPlane;
beforeEach((test) => {
  if (inject('serverMissing') !== '') test.skip(inject('serverMissing'));
});
beforeAllServed(async () => {
  const programs = await clusterPrograms(() => undefined);
  if ('missing' in programs) throw new Error(programs.missing);
  plane = await ControlPlane.start({ programs });
});
afterAll(async () => {
  for (const close of open.reverse()) await close();
  await plane?.stop();
});

async function connect(limits = {}): Promise<HttpClient> {
  const connection = new Connection(await findClusterAccess({ kubeconfig: plane.kubeconfig }), { limits });
  open.push(() => connection.close());
  return new HttpClient({ connection, face: 'controller' });
}

test.each([
  ['etcd', 0],
  ['kube-apiserver', 1],
] as const)('what was acknowledged is there after %s stood still, and an informer shows it', async (name, index) => {
  const storage = new ClusterStorage(configMapKind, await connect());
  const registry = new Registry();
  registry.register(storage as unknown as Storage);
  const client = new RegistryClient(registry, context.actor, 'controller');
  const selection = { labelSelector: `fault=${name}` };
  const informer = new Informer({ client, kind: configMapKind, selection, clock: systemClock });
  open.push(() => informer.stop());
  informer.start();
  await informer.whenSynced();
  const write = (number: number) => {
    const metadata = { name: `${name}-${number}`, namespace: 'default', labels: { fault: name } };
    return storage.create(context, configMapKind.complete({ metadata }));
  };
  await write(0);
  const probe = await connect({ headers: 500, call: 1000 });
  const pid = plane.pids[index] ?? 0;
  process.kill(pid, 'SIGSTOP');
  // Some fail before the probe does.
  const writes = Promise.allSettled(Array.from({ length: 40 }, (_, number) => write(number + 1)));
  try {
    const ready = () =>
      probe.raw('GET', '/readyz').then(
        () => 'ready',
        () => 'not ready',
      );
    await expect.poll(ready).toBe('not ready');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const results = await writes;
  let next = 1000;
  const writeNext = () => {
    next += 1;
    return write(next).then(() => 'written', String);
  };
  await expect.poll(writeNext).toBe('written');
  const present = new Set((await storage.list(context)).items.map(({ metadata }) => metadata.name));
  for (const [place, { status }] of results.entries())
    if (status === 'fulfilled') expect(present).toContain(`${name}-${place + 1}`);
  await expect.poll(() => informer.isCurrent()).toBe(true);
  expect(informer.list().length).toBeGreaterThanOrEqual(2);
});
