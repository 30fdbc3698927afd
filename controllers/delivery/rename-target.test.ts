import { beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, filesOf, publish, statusOf } from '../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../test/support/delivery-world.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';

let controller: ControllerOptions;
useDeliveryWorld();
beforeEach(async () => {
  controller = controllerOn(world);
  await publish(world, 'web');
});

const LIST = 'clusters/edge/web/kustomization.yaml';
const reconcile = (name: string) => controller.reconcile({ namespace: 'default', name }, CONTEXT);
const show = (path: string) => gitCli(site, ['show', `main:${path}`]);
async function create(name: string): Promise<void> {
  const spec = { selector: {}, git: { repo: site, directory: 'clusters/edge' } };
  await world.client.create(deliveryTargetKind, { metadata: { name }, spec } as never);
  await reconcile(name);
}

test('the refusal of a target with a new name names the one that is gone, and it takes over folders whose first line names it', async () => {
  await create('old');
  await create('new');
  const message = async () => (await statusOf(world, 'new')).message;
  expect(await message()).toContain('of target old');
  expect(await message()).not.toContain('does not exist');
  await world.client.delete(deliveryTargetKind, { name: 'old' });
  await reconcile('new');
  expect(await message()).toContain('target old does not exist here; if this target replaces it');
  const head = await world.push(site, { [LIST]: `${show(LIST).replace('["old",', '["new",')}\n` });
  await reconcile('new');
  expect(await statusOf(world, 'new')).toMatchObject({
    reason: 'Delivered',
    packages: [{ package: 'web', revision: 1 }],
  });
  // Nothing in the folder is another one: an engine has nothing to prune.
  expect(gitCli(site, ['rev-parse', 'main'])).toBe(head);
});

test('a target with a new directory leaves the files in the old one', async () => {
  await create('edge');
  await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { git: { directory: 'moved' } } });
  await reconcile('edge');
  expect(filesOf(site)).toEqual([
    ...['clusters/edge/web/cm.yaml', 'clusters/edge/web/kustomization.yaml'],
    ...['moved/web/cm.yaml', 'moved/web/kustomization.yaml'],
  ]);
});
