import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { APPROVAL_POLICY_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  remove,
  statusOf,
} from '../../test/support/delivery.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';
import { serverTrust } from '../../test/support/trust.ts';
import { approvalController } from '../approval/approval-controller.ts';
import { repositoryController } from '../repository/repository-controller.ts';
import { deliveryController } from './delivery-controller.ts';

describe('remote targets', () => {
  test('are pushed to with the expected old value, and refusals by the server are reported', async () => {
    await using world = await fixture();
    await world.register('apps');
    const first = await publish(world, 'web');
    const site = await world.bare('site');
    const hooks = {
      'pre-receive': '#!/bin/sh\ntest ! -e "$GIT_PROJECT_ROOT/closed" || { echo "branch is frozen"; exit 1; }\n',
    };
    const server = await startGitServer({ root: dirname(site), hooks });
    try {
      const { client } = world;
      await client.create(deliveryTargetKind, {
        metadata: { name: 'edge' },
        spec: { selector: {}, git: { repo: `${server.url}/site.git` } },
      });
      let onRead = () => {};
      const { store } = world;
      const controller = controllerOn(world, {
        store: {
          repositories: () => {
            onRead();
            return store.repositories();
          },
        },
      });
      const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
      await reconcile();
      expect(filesOf(site)).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
      await publishNext(world, first, 'w2', '2');
      onRead = () => {
        onRead = () => {};
        gitCli(site, [
          'update-ref',
          'refs/heads/main',
          gitCli(site, ['commit-tree', '-p', 'main', '-m', 'note', 'main^{tree}']),
        ]);
      };
      await reconcile();
      expect(gitCli(site, ['log', '--format=%s', 'main']).split('\n')).toEqual([
        'Deliver web v2',
        'note',
        'Deliver web v1',
        'begin',
      ]);
      const pushes = server.requests.filter(({ url }) => url.endsWith('/git-receive-pack')).length;
      await reconcile();
      expect(server.requests.filter(({ url }) => url.endsWith('/git-receive-pack'))).toHaveLength(pushes);
      expect((await statusOf(world)).reason).toBe('Delivered');

      await writeFile(join(world.folder, 'closed'), '');
      await publishNext(world, first, 'w3', '3');
      await expect(reconcile()).rejects.toMatchObject({ code: 'PushRefused' });
      expect(await statusOf(world)).toMatchObject({ reason: 'Error' });
      expect((await statusOf(world)).message).toContain('branch is frozen');
    } finally {
      await server.close();
    }
  });
});

test('under a manager: publications, new targets and deletions are delivered by events alone', async () => {
  await using world = await fixture();
  await world.register('apps');
  const site = await world.bare('site');
  const { client, manager } = world;
  manager.addController(controllerOn(world, { window: 20 }));
  await manager.start();
  const web = await publish(world, 'web');
  await client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { selector: {}, git: { repo: site } } });
  await manager.idle();
  expect(filesOf(site)).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
  await publish(world, 'db');
  await manager.idle();
  expect(filesOf(site)).toHaveLength(4);
  await remove(world, web);
  await manager.idle();
  expect(filesOf(site)).toEqual(['db/cm.yaml', 'db/kustomization.yaml']);
});

test('together with the other controllers: a draft is delivered when the manager is idle', async () => {
  await using world = await fixture();
  const { client, clock, folder, manager, policyFor, store } = world;
  const dependentsOf = () => [];
  const common = { client, store, clock };
  manager.addController(
    repositoryController({ ...common, policyFor, dependentsOf, trust: serverTrust, dataFolder: join(folder, 'data') }),
  );
  manager.addController(approvalController(common));
  manager.addController(deliveryController({ ...common, dataFolder: join(folder, 'data') }));
  const site = await world.bare('site', { empty: true });
  await client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { selector: {}, git: { repo: site } } });
  const git = { repo: await world.bare('apps') };
  await client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git } });
  await manager.start();
  await manager.idle();
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
  await store.change(name, { metadata: { annotations: { [APPROVAL_POLICY_ANNOTATION]: 'initial' } } }, ANNA);
  await world.settle(name);
  await manager.idle();
  expect(store.get(name).lifecycle).toBe('Published');
  expect(filesOf(site)).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
  expect((await statusOf(world)).reason).toBe('Delivered');
});
