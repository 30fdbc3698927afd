import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { controllerOn, publish } from '../../test/support/delivery.ts';
import { fixture } from '../../test/support/fixture.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';

test('many targets of one namespace on a host that hangs keep no target of another one from its delivery', async () => {
  await using world = await fixture();
  await world.register('apps');
  await publish(world, 'web');
  const site = await world.bare('site');
  const hanging = await startGitServer({ root: dirname(site), hang: 'all' });
  try {
    for (let count = 0; count < 80; count += 1)
      await world.client.create(deliveryTargetKind, {
        metadata: { namespace: 'team', name: `h${count}` },
        spec: { selector: {}, git: { repo: `${hanging.url}/h${count}.git` } },
      });
    await world.client.create(deliveryTargetKind, {
      metadata: { name: 'zz' },
      spec: { selector: {}, git: { repo: site } },
    });
    world.manager.addController(controllerOn(world));
    await world.manager.start();
    const delivered = async () => (await world.client.get(deliveryTargetKind, { name: 'zz' })).status?.lastCommit;
    await expect.poll(delivered, { timeout: 20_000 }).toBeDefined();
    await expect.poll(() => hanging.requests.length, { timeout: 20_000 }).toBe(16);
  } finally {
    await world.manager.stop(0);
    await hanging.close();
  }
});
