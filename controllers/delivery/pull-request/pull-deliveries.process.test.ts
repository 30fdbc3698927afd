import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf } from '../../../test/support/delivery.ts';
import { headOf, hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { MemoryForge } from '../../pull-request/testing-forge.ts';

const BRANCH = 'sluice/delivery/edge';

test('a process that ends before or after any request leaves one pull request and loses no delivery', async () => {
  await using world = await fixture();
  await world.register('apps');
  const site = await world.bare('site');
  const forge = new MemoryForge();
  hostRepository(forge, site);
  let controller = controllerOn(world);
  const start = () => {
    controller = controllerOn(world, { openForge: () => forge });
  };
  const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  const forgetStatus = async () => {
    const { status: _status, ...target } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await world.client.updateStatus(deliveryTargetKind, target);
  };
  const host = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: {
      ...{ selector: {}, git: { repo: site, directory: 'clusters/edge' } },
      pullRequest: { forge: host, merge: 'automatic', labels: ['delivery'] },
    },
  });
  const web = await publish(world, 'web');
  let version = 1;
  for (const moment of ['before', 'after'] as const) {
    for (let crash = 0; ; crash += 1) {
      const open = forge.pulls.length;
      let calls = 0;
      let isCrashed = false;
      forge[moment] = () => {
        calls += 1;
        if (isCrashed || calls <= crash) return;
        isCrashed = true;
        throw new Error('the process ends');
      };
      start();
      await reconcile().catch(() => undefined);
      forge[moment] = () => undefined;
      if (crash % 2 === 0) await forgetStatus();
      start();
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', packages: [{ revision: version }] });
      expect(forge.pulls.length).toBe(open + 1);
      expect(forge.pulls.at(-1)).toMatchObject({ state: 'merged', labels: ['delivery'] });
      expect(headOf(site, BRANCH)).toBeUndefined();
      version += 1;
      await publishNext(world, web, `w${version}`, `${version}`);
      if (!isCrashed) break;
    }
  }
  expect(version).toBeGreaterThan(12);
});
