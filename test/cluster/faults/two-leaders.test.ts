import { afterAll, expect, test } from 'vitest';
import { eventually } from '../../support/api/eventually.ts';
import { KubeApi } from '../../support/api/kube-api.ts';
import { type ApiProxy, startApiProxy } from '../support/api-proxy.ts';
import { directKubeconfig } from '../support/direct-kubeconfig.ts';
import { expectPublished } from '../support/expect-published.ts';
import { runLifecycle } from '../support/package-lifecycle.ts';
import { PatientClient } from '../support/patient-client.ts';
import { NAMESPACE } from '../support/sluice-serve.ts';
import { useInstallation } from '../support/use-installation.ts';

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/sluice`;
/** A leader that cannot read its Lease relies on it for this long, also when another one has it: as with a clock that is wrong. */
const SLOW = ['--lease-duration', '60s', '--renew-deadline', '50s', '--retry-period', '40s'];
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const PACKAGES = 8;

let proxy: ApiProxy | undefined;
const used = useInstallation({
  replicas: 0,
  async prepare(kept, plane) {
    proxy = await startApiProxy(plane, kept.admin, 'of-the-first');
    await kept.add({ options: SLOW, kubeconfig: proxy.kubeconfig });
  },
});
afterAll(() => proxy?.[Symbol.asyncDispose]());

test('two leaders write at the same time: each revision is published once, and nothing acknowledged is lost', async () => {
  const { current, plane } = used;
  await current.register('default');
  const first = await current.whenReady();
  const second = await current.add();
  await second.live();
  if (proxy === undefined) throw new Error('there is no proxy');
  proxy.faults.status = (_, path) => (path.includes('/leases') ? 503 : undefined);
  proxy.dropStreams();
  // As if it had released the Lease.
  const released = { spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
  expect((await current.admin.patch(LEASE, released)).status).toBe(200);
  await second.leading();
  expect(await first.isLeading()).toBe(true);
  const sides = await Promise.all(
    [first, second].map(async ({ port }) => KubeApi.of(await directKubeconfig(plane, port))),
  );
  const clients = sides.map((api) => new PatientClient(api));

  const published = new Set<string>();
  await Promise.all(
    Array.from({ length: PACKAGES }, async (_, index) => {
      const place = { namespace: 'default', repository: 'packages', packageName: `p-${index}` };
      const run = async (side: number, workspaceName: string, from?: string) => {
        const client = clients[side] as PatientClient;
        await runLifecycle({ ...place, client, workspaceName, ...(from === undefined ? {} : { from }) });
        published.add(`${place.packageName}/${workspaceName}`);
      };
      await run(index % 2, 'w1');
      // The other side has fetched it before it copies it.
      await eventually(
        () => sides[(index + 1) % 2]?.get(`${REVISIONS}/packages.p-${index}.w1`) ?? Promise.reject(),
        ({ body }) => (body.spec as { lifecycle?: string } | undefined)?.lifecycle === 'Published',
      );
      // Both publish a next revision: they compete for the main branch and for the number.
      await Promise.all([run(0, 'w2', 'w1'), run(1, 'w3', 'w1')]);
    }),
  );
  expect(await first.isLeading()).toBe(true);
  expect(await second.isLeading()).toBe(true);
  for (const api of sides) api.close();
  console.log(
    `two-leaders: ${published.size} publications; ${JSON.stringify(clients.map(({ failures }) => Object.fromEntries(failures)))}`,
  );
  first.kill('SIGKILL');
  await expectPublished(current, [...published]);
});
