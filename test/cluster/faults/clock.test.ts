import { expect, test } from 'vitest';
import { expectPublished } from '../support/expect-published.ts';
import { faketime } from '../support/faketime.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { NAMESPACE, type Replica } from '../support/sluice-serve.ts';
import { useInstallation } from '../support/use-installation.ts';

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/sluice`;
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const HOUR_MS = 3_600_000;
const at = await faketime();
const published: string[] = [];
const used = useInstallation({
  replicas: 0,
  prepare: (kept) => kept.add({ environment: at?.('+1h') ?? {} }),
});

/** How far the clock of a replica is ahead, by the times of its log. */
function aheadMs({ lines }: Replica): number {
  const [time = ''] = lines.join('\n').match(/\d{4}-\d\d-\d\dT[\d:.]+Z/) ?? [];
  return Date.parse(time) - Date.now();
}

async function version(): Promise<bigint> {
  return BigInt((await used.current.admin.list(REVISIONS)).body.metadata.resourceVersion ?? '0');
}

async function transitions(): Promise<number> {
  return ((await used.current.admin.get(LEASE)).body.spec as { leaseTransitions?: number }).leaseTransitions ?? 0;
}

/** Clients publish while two replicas run, of which only the first leads. Then it is killed, and the other one leads. */
async function handOver(prefix: string, from: Replica, to: Replica): Promise<void> {
  const { current } = used;
  await to.live();
  const [terms, before] = [await transitions(), await version()];
  const load = startLoad(current, prefix);
  for (let round = 0; round < 5; round += 1) {
    await load.progress(4);
    expect([await from.isLeading(), await to.isLeading()]).toEqual([true, false]);
  }
  const last = await version();
  expect(last).toBeGreaterThan(before);
  await current.remove(from);
  expect(await current.whenReady()).toBe(to);
  await load.progress(10);
  published.push(...(await load.stop()));
  expect(await version()).toBeGreaterThan(last);
  expect(await transitions()).toBe(terms + 1);
  await expectPublished(current, published);
}

test('leaders whose clocks are an hour apart take over from each other, and versions rise', async ({ skip }) => {
  skip(at === undefined, 'libfaketime is not installed and cannot be downloaded');
  if (at === undefined) return;
  const { current } = used;
  const ahead = await current.whenReady();
  expect(aheadMs(ahead)).toBeGreaterThan(HOUR_MS / 2);
  await current.register('default');
  const behind = await current.add({ environment: at('-55m') });
  await handOver('ahead', ahead, behind);
  expect(aheadMs(behind)).toBeLessThan(-HOUR_MS / 2);
  const right = await current.add({ environment: {} });
  await handOver('behind', behind, right);
});
