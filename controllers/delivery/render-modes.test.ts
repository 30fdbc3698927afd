import { beforeEach, expect, test } from 'vitest';
import { packageBuilder } from '../../src/delivery/render/build-package.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { programFolder } from '../../src/function/external/testing-programs.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, configMap, controllerOn, filesOf, statusOf, type TargetSpec } from '../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../test/support/delivery-world.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';

useDeliveryWorld();
beforeEach(async () => {
  const { name } = await world.draft('apps/web/w1', {
    'kustomization.yaml': 'resources: [cm.yaml]\n',
    'cm.yaml': configMap('web'),
  });
  await world.publish(name);
});

const create = (spec: Partial<TargetSpec>) =>
  world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site }, ...spec },
  });
const show = (path: string) => gitCli(site, ['show', `main:${path}`]);

test('a target renders a kustomization once for each tree, and without the program its status has the next step', async () => {
  await using programs = await programFolder();
  await create({ render: 'kustomize' });
  const without = controllerOn(world);
  await without.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  expect(await statusOf(world)).toMatchObject({
    reason: 'Partial',
    message: expect.stringContaining(
      'apps/web: RendererMissing: cannot render the package: the server has no kustomize',
    ),
  });
  await programs.add(
    'kustomize',
    `echo 1 >> ${programs.path}/runs; printf '${configMap('rendered').replaceAll('\n', '\\n')}'`,
  );
  const limits = { time: 20_000, outputBytes: 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
  const buildPackage = packageBuilder({ kustomize: { ...limits, program: `${programs.path}/kustomize` } });
  const controller = controllerOn(world, { buildPackage });
  for (const _ of [1, 2]) await controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  expect(filesOf(site)).toEqual(['web/kustomization.yaml', 'web/manifests.yaml']);
  expect(show('web/kustomization.yaml')).toMatch(/^# Written by Sluice.*\n[\s\S]*resources:\n- manifests\.yaml$/);
  expect(show('web/manifests.yaml')).toContain('name: rendered');
  expect(await programs.pids('runs')).toEqual([1]);
  expect((await statusOf(world)).reason).toBe('Delivered');
});

test('passthrough delivers the package as it is, repairs it, and gives the folder back to rendered files', async () => {
  await create({ render: 'passthrough' });
  const controller = controllerOn(world);
  const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  await reconcile();
  expect(filesOf(site)).toEqual(expect.arrayContaining(['web/README.md', 'web/cm.yaml', 'web/kustomization.yaml']));
  expect(filesOf(site)).not.toContain('web/Kptfile');
  expect(show('web/kustomization.yaml')).toMatch(/^# Written by Sluice.*\nresources: \[cm\.yaml\]$/);
  const head = gitCli(site, ['rev-parse', 'main']);
  await reconcile();
  expect(gitCli(site, ['rev-parse', 'main'])).toBe(head);
  await world.push(site, { 'web/cm.yaml': 'a: b\n' });
  await reconcile();
  expect(show('web/cm.yaml')).toContain('name: web');
  await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { render: 'none' } });
  await reconcile();
  expect(await statusOf(world)).toMatchObject({ reason: 'Partial', message: expect.stringContaining('OwnBuildFile') });
});
