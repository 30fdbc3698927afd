import { expect, test } from 'vitest';
import { KubeApi } from '../../support/api/kube-api.ts';
import { directKubeconfig } from '../support/direct-kubeconfig.ts';
import { expectPublished } from '../support/expect-published.ts';
import { startLoad } from '../support/lifecycle-load.ts';
import { runLifecycle } from '../support/package-lifecycle.ts';
import { PatientClient } from '../support/patient-client.ts';
import { useInstallation } from '../support/use-installation.ts';

const ROUNDS = 4;
/** Milliseconds before each response of the Git host, so that a leader is stopped while it pushes. */
const GIT_DELAY_MS = 150;
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';

/** Each round waits until it expires. */
const LEASE = ['--lease-duration', '8s', '--renew-deadline', '6s', '--retry-period', '1s'];

const used = useInstallation({ options: LEASE });

test('a leader that stands still for longer than its lease does nothing afterwards, loses nothing, and ends', async () => {
  const { current, plane } = used;
  await current.register('default');
  const published: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    current.git.behaviour.delayMs = GIT_DELAY_MS;
    const load = startLoad(current, `pause-${round}`);
    const first = await current.whenReady();
    await load.progress(6);

    // Drafts that the leader is about to publish when it is stopped.
    const drafts = ['kept', 'returned', 'deleted', 'published'].map((name) => `${name}-${round}`);
    const client = new PatientClient(current.admin);
    const proposal = {
      client,
      namespace: 'default',
      repository: 'packages',
      workspaceName: 'w1',
      until: 'proposed',
    } as const;
    for (const packageName of drafts) await runLifecycle({ ...proposal, packageName });
    const direct = await KubeApi.of(await directKubeconfig(plane, first.port));
    const path = (packageName: string) => `${REVISIONS}/packages.${packageName}.w1`;
    expect((await direct.get(path(drafts[0] ?? ''))).status).toBe(200);

    first.kill('SIGSTOP');
    const late = drafts.map((name) =>
      direct.patch(`${path(name)}/approval`, { spec: { lifecycle: 'Published' } }).then(
        ({ status }) => status,
        () => 'no response',
      ),
    );
    const second = await current.whenReady(first);
    expect(second).not.toBe(first);
    await load.progress(6);
    const [, returned = '', deleted = '', other = ''] = drafts;
    const patch = { headers: { 'content-type': 'application/merge-patch+json' } };
    for (const [name, lifecycle] of [
      [returned, 'Draft'],
      [deleted, 'Draft'],
    ] as const)
      expect((await client.send('PATCH', path(name), { ...patch, body: { spec: { lifecycle } } })).answer.status).toBe(
        200,
      );
    expect((await client.send('DELETE', path(deleted))).answer.status).toBe(200);
    await runLifecycle({ ...proposal, packageName: other, until: 'published', isProposed: true });
    published.push(`${other}/w1`);

    first.kill('SIGCONT');
    expect(await first.ended).toBe(1);
    for (const status of await Promise.all(late)) expect(['no response', 503]).toContain(status);
    direct.close();
    current.git.behaviour.delayMs = undefined;
    await load.progress(3);
    published.push(...(await load.stop()));
    // It did not publish what it was asked to before it stood still.
    for (const [name, lifecycle] of [
      [drafts[0] ?? '', 'Proposed'],
      [returned, 'Draft'],
    ] as const)
      expect((await current.admin.get(path(name))).body.spec).toMatchObject({ lifecycle });
    expect((await current.admin.get(path(deleted))).status).toBe(404);
    for (const name of [drafts[0] ?? '', returned]) {
      await client.send('PATCH', path(name), { ...patch, body: { spec: { lifecycle: 'Draft' } } });
      expect((await client.send('DELETE', path(name))).answer.status).toBe(200);
    }
  }
  console.log(`leader-pause: ${ROUNDS} rounds, ${published.length} publications`);
  await expectPublished(current, published);
});
