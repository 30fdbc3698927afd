import { afterAll, expect, test } from 'vitest';
import { type ApiProxy, startApiProxy } from '../support/api-proxy.ts';
import { expectPublished } from '../support/expect-published.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import type { Replica } from '../support/sluice-serve.ts';
import { useInstallation } from '../support/use-installation.ts';

/** Acknowledged steps during a fault. */
const STEPS = 45;
const published: string[] = [];
/** Between each replica and the kube-apiserver. */
const proxies = new Map<Replica, ApiProxy>();
const used = useInstallation({
  replicas: 0,
  async prepare(kept, plane) {
    for (const name of ['proxy-1', 'proxy-2']) {
      const proxy = await startApiProxy(plane, kept.admin, name);
      await kept.add({ kubeconfig: proxy.kubeconfig, onStart: (replica) => proxies.set(replica, proxy) });
    }
  },
});
afterAll(async () => {
  for (const proxy of new Set(proxies.values())) await proxy[Symbol.asyncDispose]();
});

async function loaded(prefix: string, faulty: (load: ReturnType<typeof startLoad>) => Promise<void>): Promise<void> {
  const load = startLoad(used.current, prefix);
  await load.progress(5);
  await faulty(load);
  await load.progress(5);
  published.push(...(await load.stop()));
  await expectPublished(used.current, published);
}
const all = () => [...new Set(proxies.values())];
const struck = () => all().reduce((sum, proxy) => sum + proxy.struck, 0);

test('a fifth of all requests to the kube-apiserver fails with 429 or 500', async () => {
  await used.current.register('default');
  const seed = Date.now() % 2 ** 31;
  const random = randomNumbers(seed);
  const before = struck();
  await loaded('failed', async (load) => {
    for (const { faults } of all()) faults.status = () => (random() > 1 / 5 ? undefined : random() < 0.5 ? 429 : 500);
    await load.progress(STEPS);
    for (const { faults } of all()) faults.status = undefined;
  });
  console.log(`api-faults: seed ${seed}, ${struck() - before} responses 429 or 500`);
  expect(struck() - before).toBeGreaterThan(10);
});

test('each watch ends after a second', async () => {
  const before = struck();
  await loaded('unwatched', async (load) => {
    for (const { faults } of all()) faults.watchMs = 1000;
    // Those that are open end with their connections.
    for (const proxy of all()) proxy.dropStreams();
    await load.progress(STEPS);
    await expect.poll(() => struck() - before).toBeGreaterThan(20);
    for (const { faults } of all()) faults.watchMs = undefined;
  });
  console.log(`api-faults: ${struck() - before} watches ended`);
});

test('the network between the leader and the kube-apiserver is cut: it ends, and the other one leads', async () => {
  await loaded('cut', async (load) => {
    const leader = await used.current.whenReady();
    const proxy = proxies.get(leader);
    if (proxy === undefined) throw new Error('the leader has no proxy');
    proxy.isCut = true;
    const next = await used.current.whenReady(leader);
    expect(await leader.ended).toBe(1);
    expect(proxies.get(next)).not.toBe(proxy);
    await load.progress(STEPS);
    proxy.isCut = false;
    await expect.poll(() => used.current.replicas.length).toBe(2);
  });
});

test('a request of the next leader that gets no response is repeated', async () => {
  await loaded('silent', async (load) => {
    const leader = await used.current.whenReady();
    const reservations: ApiProxy[] = [];
    for (const proxy of all())
      proxy.faults.isSilent = (method, path) => {
        if (method !== 'PUT' || !path.includes('/configmaps/sluice-resource-versions')) return false;
        return reservations.push(proxy) === 1;
      };
    leader.kill('SIGKILL');
    const next = await used.current.whenReady(leader);
    const proxy = proxies.get(next);
    // A slow one is repeated too.
    expect(reservations.length).toBeGreaterThanOrEqual(2);
    expect(reservations.every((one) => one === proxy)).toBe(true);
    for (const { faults } of all()) faults.isSilent = undefined;
    await load.progress(STEPS);
  });
});
