import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { readMessage } from '../../src/delivery/tree/trailers.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
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
  type TargetSpec,
} from '../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../test/support/delivery-world.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { git as gitCli } from '../../test/support/git/git-cli.ts';
import { newServerTrust } from '../../test/support/trust.ts';
import { BuiltFolders } from './branch/built-folders.ts';

describe('delivery controller, rare cases', () => {
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

  test('gate verdicts are written into the trailers', async () => {
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

  test('a verdict for earlier content is stale in the trailers, as in the approval', async () => {
    const metadata = { annotations: { 'sluice.dev/gates': 'warn' } };
    await world.client.patch(repositoryKind, { namespace: 'default', name: 'apps' }, { metadata });
    const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
    await expect.poll(() => world.policyFor(world.store.get(name)).enforcement).toBe('warn');
    const kptfile = [{ op: 'addGate', conditionType: 'example.com/Tested' }] as const;
    const conditions = [{ type: 'example.com/Tested', status: 'True' }] as const;
    await world.store.change(name, { kptfile, conditions }, ANNA);
    await world.store.change(name, { files: new Map([['cm.yaml', Buffer.from(configMap('web', '2'))]]) }, ANNA);
    await world.publish(name);
    await create();
    await reconcile();
    const message = gitCli(site, ['log', '-1', '--format=%B', 'main']);
    expect(message).toContain('Sluice-Gates: example.com/Tested=Stale by anna');
    expect(readMessage(message).delivered[0]?.gates).toMatchObject([{ status: 'Stale', by: 'anna' }]);
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

  test('folders of unknown repositories stay', async () => {
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

  test('a revoked key removes nothing from the clusters', async () => {
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
      // Revoked as of a time before the publications.
      for (const known of ledger.repositories()) ledger.putRepository({ ...known, mainHeads: {} });
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

  test('a record that is pushed in place of a deletion removes nothing', async () => {
    const first = await publish(world, 'web');
    const second = await publishNext(world, first, 'w2', '2');
    const third = await publishNext(world, second, 'w3', '3');
    await create();
    await reconcile();
    // A proper deletion: the remaining revision is delivered.
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
    expect((await statusOf(world)).message).toContain('it was not deleted through Sluice');
  });

  test('labels select a revision only while their record counts, and its loss removes nothing', async () => {
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

  test('an approval that was copied onto other content is not delivered', async () => {
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

  test('evicted manifests are rebuilt only where the branch needs them', async () => {
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
    // Only ids are kept.
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

  test('loose objects that deliveries leave in a hosted repository are packed', async () => {
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

  test('a target with more files than can be read is an error that names the limit and the next step', async () => {
    await publish(world, 'web');
    await create({});
    await reconcile();
    // Few objects that stand for 500,500 files.
    const tree = (lines: readonly string[]) =>
      execFileSync('git', ['--git-dir', site, 'mktree'], {
        input: lines.map((line) => `${line}\n`).join(''),
        encoding: 'utf8',
      }).trim();
    const blob = gitCli(site, ['rev-parse', 'main:clusters/edge/web/cm.yaml']).trim();
    const many = (count: number, entry: (name: string) => string) =>
      tree(Array.from({ length: count }, (_, at) => entry(`n${String(at).padStart(4, '0')}`)));
    const files = many(1001, (name) => `100644 blob ${blob}\t${name}`);
    const folders = many(500, (name) => `040000 tree ${files}\t${name}`);
    const root = tree([`040000 tree ${tree([`040000 tree ${folders}\tedge`])}\tclusters`]);
    const commit = gitCli(site, ['commit-tree', '-m', 'many', '-p', 'main', root]).trim();
    gitCli(site, ['update-ref', 'refs/heads/main', commit]);
    await expect(reconcile()).rejects.toThrow(
      /clusters\/edge of the target contains more than 500000 files; divide its packages among targets/,
    );
    expect(gitCli(site, ['rev-parse', 'main']).trim()).toBe(commit);
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
    expect((await statusOf(world, 'edge')).packages.map((one) => one.package)).toEqual(['web']);
    expect((await statusOf(world, 'core')).packages).toEqual([]);
    await world.client.patch(repositoryKind, { name: 'apps' }, { metadata: { labels: { team: 'a' } } });
    await reconcile('core');
    expect((await statusOf(world, 'core')).packages).toHaveLength(2);
  });

  const _commitOnTop = (message: string) => gitCli(site, ['commit-tree', '-p', 'main', '-m', message, 'main^{tree}']);

  test('it never writes to a branch of packages', async () => {
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
});
