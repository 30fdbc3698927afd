import { beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { type ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  remove,
  squashMain,
  statusOf,
  type TargetSpec,
} from '../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../test/support/delivery-world.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';

describe('delivery controller', () => {
  let controller: ControllerOptions;
  useDeliveryWorld();
  beforeEach(() => {
    controller = controllerOn(world);
  });

  const reconcile = (name = 'edge') => controller.reconcile({ namespace: 'default', name }, CONTEXT);
  const create = (spec: Partial<TargetSpec> = {}, name = 'edge') =>
    world.client.create(deliveryTargetKind, {
      metadata: { name },
      spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, ...spec },
    });
  const forgetStatus = async () => {
    const { status: _status, ...target } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await world.client.updateStatus(deliveryTargetKind, target);
    for (const { metadata } of (await world.client.list(packageDeliveryKind)).items)
      await world.client.delete(packageDeliveryKind, metadata);
  };
  const commits = () => Number(gitCli(site, ['rev-list', '--count', 'main']));
  const show = (path: string) => gitCli(site, ['show', `main:${path}`]);

  test('commits published packages, reports it, and makes no second commit', async () => {
    const name = await publish(world, 'web');
    await create();
    expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
    const folder = 'clusters/edge/web';
    expect(filesOf(site)).toEqual([`${folder}/cm.yaml`, `${folder}/kustomization.yaml`]);
    const message = gitCli(site, ['log', '-1', '--format=%B', 'main']);
    const { commit, tip } = world.store.get(name);
    expect(message).toContain('Deliver web v1');
    expect(message).toContain(`Sluice-Source-Commit: ${commit}`);
    expect(message).toContain(`Sluice-Source-Tree: ${tip.tree}`);
    const head = gitCli(site, ['rev-parse', 'main']);
    const { status, packages, reason } = await statusOf(world);
    expect(reason).toBe('Delivered');
    expect(status).toMatchObject({ lastCommit: head, observedGeneration: 1, packageCount: 1 });
    expect(packages).toEqual([{ repository: 'apps', package: 'web', revision: 1, commit, tree: tip.tree }]);
    expect(await world.events('edge')).toEqual([`Delivered: commit ${head}: web v1`]);
    const { metadata } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await reconcile();
    await controllerOn(world).reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
    expect(commits()).toBe(2);
    const after = await world.client.get(deliveryTargetKind, { name: 'edge' });
    expect(after.metadata.resourceVersion).toBe(metadata.resourceVersion);
  });

  test('a crash between the commit and the status only repeats a no-op', async () => {
    await publish(world, 'web');
    const before = await create();
    await reconcile();
    const { status } = await statusOf(world);
    const now = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await world.client.updateStatus(deliveryTargetKind, { ...now, status: before.status });
    await controllerOn(world).reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
    expect(commits()).toBe(2);
    expect((await statusOf(world)).status).toMatchObject({ lastCommit: status?.lastCommit, packageCount: 1 });
  });

  test('a package that is deleted or no longer selected is removed, by emptying or by deleting its folder', async () => {
    const web = await publish(world, 'web');
    await publish(world, 'db');
    await create({ onRemoval: 'empty' });
    await create({ git: { repo: site, directory: 'clusters/core' } }, 'core');
    for (const name of ['edge', 'core']) await reconcile(name);
    await world.store.update(web, { action: 'propose-deletion' }, ANNA);
    for (const name of ['edge', 'core']) await reconcile(name);
    expect(filesOf(site)).toHaveLength(8);
    await world.store.update(web, { action: 'delete' }, ANNA);
    for (const name of ['edge', 'core']) await reconcile(name);
    expect(filesOf(site)).toEqual([
      'clusters/core/db/cm.yaml',
      'clusters/core/db/kustomization.yaml',
      'clusters/edge/db/cm.yaml',
      'clusters/edge/db/kustomization.yaml',
      'clusters/edge/web/kustomization.yaml',
    ]);
    expect(show('clusters/edge/web/kustomization.yaml')).toContain('resources: []');
    expect((await world.events('edge')).at(-1)).toMatch(/^Delivered: commit [0-9a-f]{40}: web removed$/);
    expect((await statusOf(world)).packages.map((one) => one.package)).toEqual(['db']);
  });

  test('the last package is removed only if the target allows it', async () => {
    const web = await publish(world, 'web');
    await create();
    await reconcile();
    await remove(world, web);
    await reconcile();
    expect(filesOf(site)).toHaveLength(2);
    expect(await statusOf(world)).toMatchObject({ reason: 'PruneHeld' });
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { allowPrune: true } });
    await reconcile();
    expect(filesOf(site)).toEqual([]);
    expect((await statusOf(world)).reason).toBe('Delivered');
  });

  test('a repository that is not registered is reported with one event; Ready is False if nothing else is selected', async () => {
    await publish(world, 'web');
    await create({ selector: { repositories: ['pakages'] } });
    for (let round = 0; round < 2; round += 1) await reconcile();
    const text = 'repository pakages is not registered in this namespace';
    expect(await statusOf(world)).toMatchObject({
      ...{ reason: 'RepositoryMissing', message: `0 packages are delivered; ${text}` },
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    });
    expect(await world.events('edge')).toEqual([`RepositoryMissing: ${text}`]);
    await world.client.patch(
      deliveryTargetKind,
      { name: 'edge' },
      { spec: { selector: { repositories: ['apps', 'pakages'] } } },
    );
    await reconcile();
    expect(await statusOf(world)).toMatchObject({
      ...{ reason: 'Delivered', message: `1 package is delivered; ${text}` },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    expect((await world.events('edge')).filter((one) => one.startsWith('RepositoryMissing'))).toHaveLength(1);
  });

  test('a Secret is refused with one event, and the other packages are delivered', async () => {
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: hunter2\n';
    await publish(world, 'web', '1', { 'secret.yaml': secret });
    await publish(world, 'db');
    await create();
    await reconcile();
    await reconcile();
    expect(filesOf(site).every((file) => file.includes('/db/'))).toBe(true);
    const { reason, message } = await statusOf(world);
    expect(reason).toBe('Partial');
    expect(message).toContain('apps/web: UnencryptedSecret');
    expect(message).not.toContain('hunter2');
    const refused = (await world.events('edge')).filter((event) => event.startsWith('Refused'));
    expect(refused).toHaveLength(1);
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { allowSecrets: true } });
    await reconcile();
    expect(filesOf(site)).toContain('clusters/edge/web/secret.yaml');
    expect((await statusOf(world)).reason).toBe('Delivered');
  });

  test('an out-of-band tag is delivered only where the target allows it', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const { path } = world.store.repository('apps').git;
    const pushed = await world.push(path, { 'web/cm.yaml': configMap('web', '9') }, 'elsewhere', 'refs/heads/main');
    gitCli(path, ['tag', 'web/v2', pushed]);
    gitCli(path, ['tag', 'db/v1', pushed]);
    await world.store.repository('apps').refresh();
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "1"');
    const { reason, message, packages, status } = await statusOf(world);
    expect([reason, packages]).toEqual(['Partial', [expect.objectContaining({ package: 'web', revision: 1 })]]);
    expect(message).toContain('apps/web: OutOfBand: v2 was published out of band');
    expect(message).toContain('v1 stays delivered');
    expect(findCondition(status?.conditions, 'Held')).toMatchObject({ status: 'True', reason: 'TrustMissing' });
    expect(await world.events('edge')).toContainEqual(
      expect.stringMatching(/^Held: apps\/web: v2 was published out of band/),
    );
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { allowOutOfBand: true } });
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "9"');
    const { conditions } = (await statusOf(world)).status ?? {};
    expect(findCondition(conditions, 'Held')).toMatchObject({ status: 'False', reason: 'Trusted' });
  });

  test('an older publication is not delivered in place of a newer one that does not count', async () => {
    const first = await publish(world, 'web');
    const { path } = world.store.repository('apps').git;
    await create();
    await reconcile();
    await publishNext(world, first, 'w2', '2');
    const pushed = await world.push(path, { 'web/cm.yaml': configMap('web', '9') }, 'elsewhere', 'refs/heads/main');
    gitCli(path, ['tag', 'web/v3', pushed]);
    await world.store.repository('apps').refresh();
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "1"');
    expect((await statusOf(world)).message).toContain('v1 stays delivered');
  });

  test('a delivered revision whose tag is moved stays as it was, also after a restart', async () => {
    const first = await publish(world, 'web');
    await publishNext(world, first, 'w2', '2');
    await create();
    await reconcile();
    const before = gitCli(site, ['rev-parse', 'main']);
    const { path } = world.store.repository('apps').git;
    gitCli(path, ['update-ref', 'refs/tags/web/v2', gitCli(path, ['rev-parse', 'web/v1'])]);
    await world.store.repository('apps').refresh();
    await reconcile();
    await forgetStatus();
    controller = controllerOn(world);
    await reconcile();
    expect(gitCli(site, ['rev-parse', 'main'])).toBe(before);
    const { status, packages, message } = await statusOf(world);
    expect(message).toContain('apps/web: TrustLost: v2 was delivered and does not count any more (OtherRevision');
    expect(findCondition(status?.conditions, 'Held')?.status).toBe('True');
    expect(packages).toEqual([expect.objectContaining({ package: 'web', revision: 2 })]);
    expect((await world.events('edge')).filter((event) => event.startsWith('Held: apps/web'))).not.toEqual([]);
  });

  test('an unverified publication waits without an alert, and the delivered one stays', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    await publishNext(world, 'apps.web.w1', 'w2', '2');
    const repository = world.store.repository('apps');
    const outOfBand = { reason: 'Unverified', message: 'the signature of its statement was not verified yet' };
    const index = new Proxy(repository.index, {
      get(real, name) {
        if (name === 'all') return () => Array.from(real.all(), (row) => new Proxy(row, waiting));
        if (name === 'ofPackage') return (path: string) => real.ofPackage(path).map((row) => new Proxy(row, waiting));
        const value: unknown = Reflect.get(real, name, real);
        return typeof value === 'function' ? value.bind(real) : value;
      },
    });
    const waiting: ProxyHandler<PackageRevision> = {
      get: (row, name) => (name === 'outOfBand' ? outOfBand : Reflect.get(row, name, row)),
    };
    const unverified = new Proxy(repository, {
      get(real, name) {
        const value: unknown = name === 'index' ? index : Reflect.get(real, name, real);
        return typeof value === 'function' ? value.bind(real) : value;
      },
    });
    await controllerOn(world, { store: { repositories: () => [unverified] } }).reconcile(
      { namespace: 'default', name: 'edge' },
      CONTEXT,
    );
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "1"');
    const { reason, message, packages, status } = await statusOf(world);
    expect([reason, message]).toEqual(['Delivered', '0 packages are delivered; 1 waits for the check of signatures']);
    expect(packages).toEqual([expect.objectContaining({ package: 'web', revision: 1 })]);
    expect(findCondition(status?.conditions, 'Held')).toBeUndefined();
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "2"');
    expect((await world.events('edge')).filter((event) => !event.startsWith('Delivered'))).toEqual([]);
  });

  test('a tag that vanishes removes nothing from the clusters, and restores no lower revision', async () => {
    const one = await publish(world, 'one');
    const two = await publishNext(world, await publish(world, 'two'), 'w2', '2');
    await create();
    await reconcile();
    const before = gitCli(site, ['rev-parse', 'main']);
    const { path } = world.store.repository('apps').git;
    gitCli(path, ['update-ref', '-d', 'refs/tags/one/v1']);
    gitCli(path, ['update-ref', '-d', 'refs/tags/two/v2']);
    await world.store.repository('apps').refresh();
    expect([world.store.find(one), world.store.find(two)]).toEqual([undefined, undefined]);
    await reconcile();
    expect(gitCli(site, ['rev-parse', 'main'])).toBe(before);
    const { reason, message } = await statusOf(world);
    expect([reason, message.includes('it was not deleted through Sluice')]).toEqual(['Partial', true]);
    await world.client.patch(
      deliveryTargetKind,
      { name: 'edge' },
      { spec: { allowOutOfBand: true, allowPrune: true } },
    );
    await reconcile();
    expect(filesOf(site).filter((file) => file.includes('/one/'))).toEqual([]);
    expect(show('clusters/edge/two/cm.yaml')).toContain('value: "1"');
  });

  test('a branch that advances meanwhile is read again, and changes by others stay', async () => {
    await publish(world, 'web');
    await create({ git: { repo: site, directory: '/' } });
    const { store } = world;
    let pushed = 0;
    controller = controllerOn(world, {
      store: {
        // Called between reading the branch and committing to it.
        repositories: () => {
          if (pushed++ < 2) gitCli(site, ['update-ref', 'refs/heads/main', commitOnTop(`note ${pushed}`)]);
          return store.repositories();
        },
      },
    });
    await reconcile();
    expect(pushed).toBe(3);
    expect((await statusOf(world)).reason).toBe('Delivered');
    expect(filesOf(site)).toContain('web/cm.yaml');
    expect(gitCli(site, ['log', '--format=%s', 'main']).split('\n')).toEqual([
      'Deliver web v1',
      'note 2',
      'note 1',
      'begin',
    ]);
  });
  test('lastCommit is the head if the repository has lost the commit, and stays if other writers commit on top of it', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const lastCommit = async () => (await statusOf(world)).status?.lastCommit;
    const delivered = await lastCommit();
    gitCli(site, ['update-ref', 'refs/heads/main', commitOnTop('note')]);
    await reconcile();
    expect(await lastCommit()).toBe(delivered);
    // An open repository, then one that is opened after the loss.
    for (const restarted of [controller, controllerOn(world)]) {
      controller = restarted;
      gitCli(site, ['update-ref', 'refs/heads/main', commitOnTop('note')]);
      const squashed = squashMain(site);
      await reconcile();
      expect(await lastCommit()).toBe(squashed);
    }
    expect(commits()).toBe(1);
    expect((await world.events('edge')).filter((text) => text.startsWith('Delivered'))).toHaveLength(1);
  });

  test('lastCommit is the head if another writer moved the folders to the new directory of the target', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const tree = gitCli(site, ['rev-parse', 'main:clusters/edge']);
    const clusters = gitCli(site, ['mktree'], `040000 tree ${tree}\twest\n`);
    const root = gitCli(site, ['mktree'], `040000 tree ${clusters}\tclusters\n`);
    const moved = gitCli(site, ['commit-tree', '-p', 'main', '-m', 'move', root]);
    gitCli(site, ['update-ref', 'refs/heads/main', moved]);
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { git: { directory: 'clusters/west' } } });
    await reconcile();
    expect(gitCli(site, ['rev-parse', 'main'])).toBe(moved);
    expect((await statusOf(world)).status?.lastCommit).toBe(moved);
  });

  const commitOnTop = (message: string) => gitCli(site, ['commit-tree', '-p', 'main', '-m', message, 'main^{tree}']);

  test('an empty repository gets its first commit, a missing branch is created only on request', async () => {
    await publish(world, 'web');
    const empty = await world.bare('empty', { empty: true });
    await create({ git: { repo: empty } });
    await reconcile();
    expect(filesOf(empty)).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
    await create({ git: { repo: site, branch: 'live' } }, 'live');
    await reconcile('live');
    expect(await statusOf(world, 'live')).toMatchObject({
      reason: 'BranchMissing',
      message: `branch live does not exist in ${site}; create it, or set spec.git.createBranch: true`,
    });
    expect(await world.events('live')).toEqual([expect.stringMatching(/^BranchMissing: branch live does not exist/)]);
    await world.client.patch(deliveryTargetKind, { name: 'live' }, { spec: { git: { createBranch: true } } });
    await reconcile('live');
    expect(filesOf(site, 'live')).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
    expect(commits()).toBe(1);
  });

  test('packages that become ready within the window share a commit', async () => {
    const clock = world.clock as ManualClock;
    controller = controllerOn(world, { window: 200 });
    await create();
    await publish(world, 'web');
    const running = reconcile();
    await settle();
    await publish(world, 'db');
    clock.advance(200);
    await running;
    expect(commits()).toBe(2);
    expect(gitCli(site, ['log', '-1', '--format=%s', 'main'])).toBe('Deliver db v1, web v1');
  });
});
