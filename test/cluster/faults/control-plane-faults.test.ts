import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { expectPublished } from '../support/expect-published.ts';
import { SHORT_LEASE } from '../support/kept-installation.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { useInstallation } from '../support/use-installation.ts';

/** Milliseconds for which etcd stands still, which is longer than each lease. */
const STANDSTILL_MS = 30_000;
const published: string[] = [];
const used = useInstallation({ options: SHORT_LEASE });

async function loaded(prefix: string, faulty: () => Promise<void>): Promise<void> {
  const load = startLoad(used.current, prefix);
  await load.progress(10);
  await faulty();
  await load.progress(10);
  published.push(...(await load.stop()));
  await expectPublished(used.current, published);
}

test('kube-apiserver is killed and started again, three times', async () => {
  await used.current.register('default');
  await loaded('restarted', async () => {
    for (let round = 0; round < 3; round += 1) {
      await used.plane.killApiServer();
      await used.plane.startApiServer();
      await used.current.whenReady();
    }
  });
});

test(`etcd stands still for ${STANDSTILL_MS / 1000} s`, async () => {
  await loaded('stood-still', async () => {
    const [etcd = 0] = used.plane.pids;
    process.kill(etcd, 'SIGSTOP');
    try {
      await delay(STANDSTILL_MS);
    } finally {
      process.kill(etcd, 'SIGCONT');
    }
    await used.current.whenReady();
  });
  await expect.poll(() => used.current.replicas).toHaveLength(2);
});
