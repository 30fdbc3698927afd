import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { ManualClock, settle } from '../../src/foundation/manual-clock.ts';
import type { PackageRevision } from '../../src/package/package-revision.ts';
import { findCondition } from '../../src/resource/condition.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/delivery-target.ts';
import { repositoryKind } from '../../src/resource/kinds/repository.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  remove,
  statusOf,
  type TargetSpec,
} from '../../test/support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { newServerTrust } from '../../test/support/trust.ts';
import { BuiltFolders } from './built-folders.ts';

describe('delivery controller', () => {
  let world: Fixture;
  let controller: ControllerOptions;
  let site: string;
  beforeEach(async () => {
    world = await fixture(new ManualClock());
    await world.register('apps');
    site = await world.bare('site');
    controller = controllerOn(world);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const reconcile = (name = 'edge') => controller.reconcile({ namespace: 'default', name }, CONTEXT);
  const create = (spec: Partial<TargetSpec> = {}, name = 'edge') =>
    world.client.create(deliveryTargetKind, {
      metadata: { name },
      spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, ...spec },
    });
  const forgetStatus = async () => {
    const { status: _status, ...target } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await world.client.updateStatus(deliveryTargetKind, target);
  };
  const commits = () => Number(gitCli(site, ['rev-list', '--count', 'main']));
  const show = (path: string) => gitCli(site, ['show', `main:${path}`]);

  test('packages of another namespace are not delivered', async () => {
    await publish(world, 'web');
    const metadata = { name: 'edge', namespace: 'team' };
    const git = { repo: site, branch: 'main', directory: 'clusters/edge' };
    await world.client.create(deliveryTargetKind, { metadata, spec: { selector: { repositories: ['apps'] }, git } });
    await controller.reconcile({ namespace: 'team', name: 'edge' }, CONTEXT);
    expect(filesOf(site)).toEqual([]);
  });

  test('commits what is published, says so, and makes no second commit', async () => {
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
    const { status, reason } = await statusOf(world);
    expect(reason).toBe('Delivered');
    expect(status).toMatchObject({
      lastCommit: head,
      observedGeneration: 1,
      packages: [{ repository: 'apps', package: 'web', revision: 1, commit, tree: tip.tree }],
    });
    expect(await world.events('edge')).toEqual([`Delivered: commit ${head}: web v1`]);
    const { metadata } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await reconcile();
    await controllerOn(world).reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
    expect(commits()).toBe(2);
    const after = await world.client.get(deliveryTargetKind, { name: 'edge' });
    expect(after.metadata.resourceVersion).toBe(metadata.resourceVersion);
  });

  test('gate verdicts go into the trailers', async () => {
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
    const type = 'test.dev/v1.Review.ok';
    const condition = { type, status: 'True' } as const;
    await world.store.change(
      name,
      { kptfile: [{ op: 'addGate', conditionType: type }], conditions: [condition] },
      ANNA,
    );
    await world.publish(name);
    await create();
    await reconcile();
    expect(gitCli(site, ['log', '-1', '--format=%B', 'main'])).toContain(`Sluice-Gates: ${type}=True by anna`);
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
    expect((await statusOf(world)).status).toMatchObject({
      lastCommit: status?.lastCommit,
      packages: status?.packages,
    });
  });

  test('the highest revision or the pinned one, to two targets', async () => {
    const first = await publish(world, 'web');
    await publish(world, 'db');
    await publishNext(world, first, 'w2', '2');
    await create({ pins: [{ repository: 'apps', package: 'web', revision: 1 }] });
    await create({ selector: { packages: ['web'] }, git: { repo: site, directory: '/clusters/core' } }, 'core');
    await reconcile('edge');
    await reconcile('core');
    expect(filesOf(site)).toEqual([
      'clusters/core/web/cm.yaml',
      'clusters/core/web/kustomization.yaml',
      'clusters/edge/db/cm.yaml',
      'clusters/edge/db/kustomization.yaml',
      'clusters/edge/web/cm.yaml',
      'clusters/edge/web/kustomization.yaml',
    ]);
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "1"');
    expect(show('clusters/core/web/cm.yaml')).toContain('value: "2"');
  });

  test('what is deleted or no longer selected is removed, by emptying or by deleting its folder', async () => {
    const web = await publish(world, 'web');
    await publish(world, 'db');
    await create({ onRemoval: 'empty' });
    await create({ git: { repo: site, directory: 'clusters/core' } }, 'core');
    for (const name of ['edge', 'core']) await reconcile(name);
    await world.store.transition(web, { action: 'propose-deletion' }, ANNA);
    for (const name of ['edge', 'core']) await reconcile(name);
    expect(filesOf(site)).toHaveLength(8);
    await world.store.transition(web, { action: 'delete' }, ANNA);
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
    const { status } = await statusOf(world);
    expect(status?.packages?.map((one) => one.package)).toEqual(['db']);
  });

  test('the last package goes only if the target allows it', async () => {
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

  test('folders of repositories that are not known stay', async () => {
    await publish(world, 'web');
    await create({ allowPrune: true });
    await reconcile();
    await world.store.remove('apps');
    await reconcile();
    expect(filesOf(site)).toHaveLength(2);
    expect(await statusOf(world)).toMatchObject({
      reason: 'Partial',
      message: '0 packages are delivered; repository apps is not known or not ready, so its folders stay',
    });
  });

  test('a Secret is refused once and in words, and the other packages are delivered', async () => {
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

  test('a tag that did not come through the gates is delivered only where the target allows it', async () => {
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
    const { reason, message, status } = await statusOf(world);
    expect([reason, status?.packages]).toEqual(['Partial', [expect.objectContaining({ package: 'web', revision: 1 })]]);
    expect(message).toContain('apps/web: OutOfBand: v2 did not come through the gates');
    expect(message).toContain('v1 stays delivered');
    expect(findCondition(status?.conditions, 'Held')).toMatchObject({ status: 'True', reason: 'TrustMissing' });
    expect(await world.events('edge')).toContainEqual(expect.stringMatching(/^Held: apps\/web: v2 did not come/));
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { allowOutOfBand: true } });
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "9"');
    const { conditions } = (await statusOf(world)).status ?? {};
    expect(findCondition(conditions, 'Held')).toMatchObject({ status: 'False', reason: 'Trusted' });
  });

  test('an older publication is not delivered in the place of a newer one that does not count', async () => {
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
    const { status, message } = await statusOf(world);
    expect(message).toContain('apps/web: TrustLost: v2 was delivered and does not count any more (OtherRevision');
    expect(findCondition(status?.conditions, 'Held')?.status).toBe('True');
    expect(status?.packages).toEqual([expect.objectContaining({ package: 'web', revision: 2 })]);
    expect((await world.events('edge')).filter((event) => event.startsWith('Held: apps/web'))).not.toEqual([]);
  });

  test('a key that is revoked takes nothing off the clusters', async () => {
    const server = newServerTrust();
    const other = await fixture(new ManualClock(), server);
    try {
      await other.register('apps');
      const place = await other.bare('site');
      const run = () => controllerOn(other).reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
      await publishNext(other, await publish(other, 'web'), 'w2', '2');
      await other.client.create(deliveryTargetKind, {
        metadata: { name: 'edge' },
        spec: { selector: {}, git: { repo: place, directory: 'clusters/edge' } },
      });
      await run();
      const before = gitCli(place, ['rev-parse', 'main']);
      const { ledger } = server;
      // As of before the publications.
      for (const known of ledger.repositories()) ledger.putRepository({ ...known, mainHead: undefined });
      for (const { fingerprint } of ledger.keys()) ledger.revokeKey(fingerprint, '2026-01-02T00:00:00Z');
      await other.store.repository('apps').refresh();
      expect(other.store.get('apps.web.w2').outOfBand?.reason).toBe('RevokedKey');
      await run();
      expect(gitCli(place, ['rev-parse', 'main'])).toBe(before);
      expect((await statusOf(other)).message).toContain('does not count any more (RevokedKey');
    } finally {
      await other[Symbol.asyncDispose]();
    }
  });

  test('a record that is pushed in the place of a deletion deletes nothing', async () => {
    const first = await publish(world, 'web');
    const second = await publishNext(world, first, 'w2', '2');
    const third = await publishNext(world, second, 'w3', '3');
    await create();
    await reconcile();
    // In order: what is left is delivered.
    await remove(world, third);
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "2"');
    const before = gitCli(site, ['rev-parse', 'main']);
    const { path } = world.store.repository('apps').git;
    const [deleted = ''] = gitCli(path, ['for-each-ref', '--format=%(refname)', 'refs/sluice/deleted/']).split('\n');
    expect(deleted).toContain('v3');
    gitCli(path, ['update-ref', deleted.replace('v3', 'v2'), gitCli(path, ['rev-parse', deleted])]);
    gitCli(path, ['update-ref', '-d', 'refs/tags/web/v2']);
    await world.store.repository('apps').refresh();
    await reconcile();
    expect(gitCli(site, ['rev-parse', 'main'])).toBe(before);
    expect((await statusOf(world)).message).toContain('nobody deleted it through Sluice');
  });

  test('labels select a revision only as long as their record counts, and its loss takes nothing off', async () => {
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
    await world.store.change(name, { metadata: { labels: { tier: 'front' } } }, ANNA);
    await world.publish(name);
    await create({ selector: { packageSelector: { matchLabels: { tier: 'front' } } }, allowPrune: true });
    await reconcile();
    expect(filesOf(site)).toHaveLength(2);
    const { path } = world.store.repository('apps').git;
    for (const record of gitCli(path, ['for-each-ref', '--format=%(refname)', 'refs/sluice/records/']).split('\n'))
      gitCli(path, ['update-ref', '-d', record]);
    await world.store.repository('apps').refresh();
    await reconcile();
    expect(filesOf(site)).toHaveLength(2);
    expect((await statusOf(world)).message).toContain('the record of v1 with its labels does not count any more');
  });

  test('what is not verified yet waits without an alert, and keeps what is there', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    await publishNext(world, 'apps.web.w1', 'w2', '2');
    const repository = world.store.repository('apps');
    const outOfBand = { reason: 'Unverified', message: 'the signature of its statement was not verified yet' };
    const index = new Proxy(repository.index, {
      get(real, name) {
        if (name === 'all') return () => Array.from(real.all(), (row) => new Proxy(row, waiting));
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
    const { reason, message, status } = await statusOf(world);
    expect([reason, message]).toEqual(['Delivered', '0 packages are delivered; 1 waits for the check of signatures']);
    expect(status?.packages).toEqual([expect.objectContaining({ package: 'web', revision: 1 })]);
    expect(findCondition(status?.conditions, 'Held')).toBeUndefined();
    await reconcile();
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "2"');
    expect((await world.events('edge')).filter((event) => !event.startsWith('Delivered'))).toEqual([]);
  });

  test('a tag that vanishes takes nothing off the clusters, and brings no lower revision back', async () => {
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
    expect([reason, message.includes('nobody deleted it through Sluice')]).toEqual(['Partial', true]);
    await world.client.patch(
      deliveryTargetKind,
      { name: 'edge' },
      { spec: { allowOutOfBand: true, allowPrune: true } },
    );
    await reconcile();
    expect(filesOf(site).filter((file) => file.includes('/one/'))).toEqual([]);
    expect(show('clusters/edge/two/cm.yaml')).toContain('value: "1"');
  });

  test('an approval that was copied onto another content is not delivered', async () => {
    const name = await publish(world, 'one');
    const { path } = world.store.repository('apps').git;
    const approval = gitCli(path, ['cat-file', 'commit', 'one/v1']);
    const blob = gitCli(path, ['hash-object', '-w', '--stdin'], configMap('evil'));
    const files = gitCli(path, ['ls-tree', 'one/v1:one']).replace(/[0-9a-f]{40}(\tcm.yaml)/, `${blob}$1`);
    const folder = gitCli(path, ['mktree'], `${files}\n`);
    const root = gitCli(path, ['mktree'], `040000 tree ${folder}\tone\n`);
    const forged = approval.replace(/^tree .*/, `tree ${root}`);
    const commit = gitCli(path, ['hash-object', '-t', 'commit', '-w', '--stdin'], `${forged}\n`);
    gitCli(path, ['update-ref', 'refs/tags/one/v1', commit]);
    await world.store.repository('apps').refresh();
    expect(world.store.get(name)).toMatchObject({ commit, outOfBand: { reason: 'ContentChanged' } });
    await create();
    await reconcile();
    expect((await statusOf(world)).message).toContain('is not the content that was approved');
    expect(filesOf(site).filter((file) => file.includes('one'))).toEqual([]);
  });

  test('what is not kept is built once more only where the branch needs it', async () => {
    await publish(world, 'web');
    await publish(world, 'db');
    await create();
    const repository = world.store.repository('apps');
    const read: string[] = [];
    const counted = new Proxy(repository, {
      get(real, name) {
        if (name === 'content') {
          return (row: PackageRevision) => {
            read.push(row.key.package);
            return real.content(row);
          };
        }
        const value: unknown = Reflect.get(real, name, real);
        return typeof value === 'function' ? value.bind(real) : value;
      },
    });
    // Nothing but ids is kept.
    controller = controllerOn(world, {
      store: { repositories: () => [counted] },
      built: new BuiltFolders(0),
    });
    await reconcile();
    expect(read.splice(0).sort()).toEqual(['db', 'web']);
    await reconcile();
    expect([read, commits()]).toEqual([[], 2]);
    const drifted = await world.push(site, { 'clusters/edge/web/cm.yaml': 'changed: true\n' });
    await reconcile();
    expect(read).toEqual(['web']);
    expect(gitCli(site, ['rev-parse', 'main'])).not.toBe(drifted);
    expect(show('clusters/edge/web/cm.yaml')).toContain('value: "1"');
    expect((await statusOf(world)).reason).toBe('Delivered');
  });

  test('what deliveries leave behind in a repository of our own is packed', async () => {
    const clock = world.clock as ManualClock;
    await publish(world, 'web');
    await create({ git: { repo: 'sluice:///site.git' } });
    await reconcile();
    const own = join(world.folder, 'data', 'repositories', 'site.git');
    expect(gitCli(own, ['count-objects', '-v'])).toMatch(/^packs: 0$/m);
    clock.advance(7 * 3_600_000);
    await publishNext(world, 'apps.web.w1', 'w2', '2');
    await reconcile();
    expect(gitCli(own, ['count-objects', '-v'])).toMatch(/^count: 0$(?:.|\n)*^packs: [1-9]/m);
    expect(filesOf(own)).toHaveLength(2);
  });

  test('a package whose pinned revision is missing keeps its folder', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const pins = [{ repository: 'apps', package: 'web', revision: 7 }];
    await world.client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { pins } });
    await reconcile();
    expect(filesOf(site)).toHaveLength(2);
    const { reason, message } = await statusOf(world);
    expect(reason).toBe('Partial');
    expect(message).toContain('PinnedRevisionMissing');
  });

  test('labels of packages and of repositories select', async () => {
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
    await world.store.change(name, { metadata: { labels: { tier: 'front' } } }, ANNA);
    await world.publish(name);
    await publish(world, 'db');
    await create({ selector: { packageSelector: { matchLabels: { tier: 'front' } } } });
    const git = { repo: site, directory: 'clusters/core' };
    await create({ selector: { repositorySelector: { matchLabels: { team: 'a' } } }, git }, 'core');
    await reconcile('edge');
    await reconcile('core');
    expect((await statusOf(world, 'edge')).status?.packages?.map((one) => one.package)).toEqual(['web']);
    expect((await statusOf(world, 'core')).status?.packages).toEqual([]);
    await world.client.patch(repositoryKind, { name: 'apps' }, { metadata: { labels: { team: 'a' } } });
    await reconcile('core');
    expect((await statusOf(world, 'core')).status?.packages).toHaveLength(2);
  });

  test('a branch that moves on meanwhile is read anew, and what others wrote stays', async () => {
    await publish(world, 'web');
    await create({ git: { repo: site, directory: '/' } });
    const { store } = world;
    let pushed = 0;
    controller = controllerOn(world, {
      store: {
        // Asked between reading the branch and committing to it.
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
      'pushed',
    ]);
  });
  const commitOnTop = (message: string) => gitCli(site, ['commit-tree', '-p', 'main', '-m', message, 'main^{tree}']);

  test('an empty repository gets its first commit, a missing branch only if it is asked for', async () => {
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
    await world.client.patch(deliveryTargetKind, { name: 'live' }, { spec: { git: { createBranch: true } } });
    await reconcile('live');
    expect(filesOf(site, 'live')).toEqual(['web/cm.yaml', 'web/kustomization.yaml']);
    expect(commits()).toBe(1);
  });

  test('it never writes where packages live', async () => {
    await publish(world, 'web');
    const { path } = world.store.repository('apps').git;
    await create({ git: { repo: `file://${path}`, directory: 'elsewhere' } });
    await create({ git: { repo: path, branch: 'drafts/web/x' } }, 'draft');
    for (const name of ['edge', 'draft']) {
      await reconcile(name);
      const { reason, message } = await statusOf(world, name);
      expect(reason).toBe('TargetIsPackages');
      expect(message).toContain('belongs to the packages of Repository default/apps');
    }
    expect(gitCli(path, ['log', '-1', '--format=%s', 'main'])).toBe('Approving package revision web/1');
  });

  test('a suspended target delivers nothing', async () => {
    await publish(world, 'web');
    await create({ suspend: true });
    await reconcile();
    expect((await statusOf(world)).reason).toBe('Suspended');
    expect(commits()).toBe(1);
  });

  test('what becomes ready within the window shares a commit', async () => {
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
