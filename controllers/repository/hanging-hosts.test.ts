import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { fixture } from '../../test/support/fixture.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';

test('many registrations on a host that hangs keep no repository that was read before from being opened', async () => {
  await using world = await fixture();
  const origin = await world.bare('apps');
  await world.push(origin, { 'one/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n' });
  const server = await startGitServer({ root: dirname(origin) });
  const hanging = await startGitServer({ root: dirname(origin), hang: 'all' });
  try {
    for (let count = 0; count < 80; count += 1)
      await world.client.create(repositoryKind, {
        metadata: { name: `h${count}` },
        spec: { git: { repo: `${hanging.url}/h${count}.git` } },
      });
    const spec = { git: { repo: `${server.url}/apps.git` } };
    const apps = await world.client.create(repositoryKind, { metadata: { name: 'zz' }, spec });
    const status = { conditions: [], lastFullSyncTime: '2026-01-01T00:00:00Z' };
    await world.client.updateStatus(repositoryKind, { ...apps, status });
    world.manager.addController(repositoryControllerOf(world, { limitsSlow: true }));
    await world.manager.start();
    await expect.poll(() => world.store.list().map(({ name }) => name), { timeout: 20_000 }).toEqual(['zz.one.main']);
    expect(hanging.requests.length).toBeLessThanOrEqual(8);
  } finally {
    await world.manager.stop(0);
    await hanging.close();
    await server.close();
  }
});
