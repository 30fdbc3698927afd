import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { packageBuilder } from '../../../src/delivery/render/build-package.ts';
import { KeyedMutex } from '../../../src/foundation/concurrency/mutex.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import type { RevisionPreview } from '../../../src/package/model/revision/revision-readings.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { CONTEXT, configMap, controllerOn, publish, type TargetSpec } from '../../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../../test/support/delivery-world.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git as gitCli } from '../../../test/support/git/git-cli.ts';
import { packageFiles, packageFolders } from '../../../test/support/package-folders.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { DeliveryPreviews } from './preview-delivery.ts';

let controller: ControllerOptions;

useDeliveryWorld();
beforeEach(() => {
  controller = controllerOn(world);
});

const create = (spec: Partial<TargetSpec> = {}, name = 'edge') =>
  world.client.create(deliveryTargetKind, {
    metadata: { name },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, ...spec },
  });
const reconcile = (name = 'edge') => controller.reconcile({ namespace: 'default', name }, CONTEXT);
const head = () => gitCli(site, ['rev-parse', 'main']);

async function preview(
  revision: string,
  target?: string,
  mayReadTarget?: (target: { readonly name: string }) => Promise<boolean>,
): Promise<RevisionPreview> {
  const [targets, repositories] = await Promise.all([
    world.client.list(deliveryTargetKind),
    world.client.list(repositoryKind),
  ]);
  const previews = new DeliveryPreviews({
    ...{ store: world.store, client: world.client, network: DEFAULT_NETWORK, timeoutMs: 10_000 },
    ...{ dataFolder: join(world.folder, 'data'), mirrors: new KeyedMutex(), buildPackage: packageBuilder({}) },
    mirrorOf: ({ metadata }) => join(world.folder, 'previews', metadata.name),
    repositories: () => repositories.items,
    targets: () => targets.items,
    delivered: DeliveredPackages.from((await world.client.list(packageDeliveryKind)).items),
  });
  return previews.preview(world.store.get(revision), target, { mayReadTarget, signal: undefined });
}

/** The tree of the branch after applying the patches of a preview with Git. */
async function treeAfter({ targets }: RevisionPreview): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-preview-'));
  try {
    const patch = targets.flatMap(({ files }) => files.map((file) => file.patch)).join('');
    gitCli(site, ['--work-tree', folder, 'read-tree', targets[0]?.commit ?? '']);
    if (patch !== '') gitCli(site, ['--work-tree', folder, 'apply', '--cached', '--whitespace=nowarn', '-'], patch);
    return gitCli(site, ['write-tree']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Publishes a draft after a preview, delivers it, and compares the commit with the preview. */
async function expectPreviewed(draft: string): Promise<RevisionPreview> {
  const previewed = await preview(draft);
  const before = head();
  expect(await preview(draft)).toEqual(previewed);
  expect(head()).toBe(before);
  const expected = await treeAfter(previewed);
  await world.publish(draft);
  await reconcile();
  expect(gitCli(site, ['rev-parse', 'main^{tree}']), draft).toBe(expected);
  return previewed;
}

async function next(source: string, workspace: string, files: Record<string, string | null>): Promise<string> {
  const { key } = world.store.get(source);
  const { name } = await world.store.create(
    'apps',
    { package: key.package, workspace, source: { type: 'copy', source } },
    ANNA,
  );
  const changed = Object.entries(files).map(
    ([path, text]) => [path, text === null ? null : Buffer.from(text)] as const,
  );
  await world.store.change(name, { files: new Map(changed) }, ANNA);
  return name;
}

test('a preview is the commit that publication makes: a new package, a change, and a removed file', async () => {
  await publish(world, 'db');
  await create();
  await reconcile();
  const first = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web'), 'more.yaml': configMap('more') });
  const added = await expectPreviewed(first.name);
  const folder = 'clusters/edge/web';
  expect(added).toEqual({
    revision: 1,
    targets: [
      {
        ...{ target: 'edge', repo: site, branch: 'main', commit: expect.stringMatching(/^[0-9a-f]{40}$/) },
        state: 'Changes',
        files: ['cm.yaml', 'kustomization.yaml', 'more.yaml'].map((file) => ({
          ...{ path: `${folder}/${file}`, change: 'Added' },
          patch: expect.stringContaining(`+++ b/${folder}/${file}`),
        })),
      },
    ],
  });
  const second = await next(first.name, 'w2', { 'cm.yaml': configMap('web', '2'), 'more.yaml': null });
  const changed = await expectPreviewed(second);
  expect(changed.revision).toBe(2);
  expect(changed.targets[0]?.files.map(({ change }) => change)).toEqual(['Modified', 'Modified', 'Removed']);
  expect(changed.targets[0]?.files[0]?.patch).toContain('-  value: "1"\n+  value: "2"\n');
  // Of a delivered revision nothing is due.
  expect((await preview(second)).targets).toMatchObject([{ state: 'Unchanged', files: [] }]);
});

test('a change of labels that ends the selection previews the removal of the folder, and a drifted folder is overwritten', async () => {
  const kptfile = (site: string) =>
    `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n  labels:\n    site: ${site}\ninfo:\n  description: web\n`;
  await create({ selector: { packageSelector: { matchLabels: { site: 'east' } } }, allowPrune: true });
  const first = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web'), Kptfile: kptfile('east') });
  await expectPreviewed(first.name);
  await world.push(site, {
    'clusters/edge/web/cm.yaml': configMap('web', 'by hand'),
    'clusters/edge/web/x.yaml': 'kind: X\na: b\n',
  });
  const second = await next(first.name, 'w2', { 'cm.yaml': configMap('web', '2') });
  const overwritten = await expectPreviewed(second);
  expect(overwritten.targets[0]?.files.map(({ path, change }) => `${change} ${path.split('/').at(-1)}`)).toEqual([
    'Modified cm.yaml',
    'Modified kustomization.yaml',
    'Removed x.yaml',
  ]);
  const third = await next(second, 'w3', { Kptfile: kptfile('west') });
  const removal = await expectPreviewed(third);
  expect(removal.targets).toMatchObject([
    {
      state: 'Changes',
      message: expect.stringContaining('no longer selects'),
      files: [{ change: 'Removed' }, { change: 'Removed' }],
    },
  ]);
});

test('a changed mode and a symbolic link in place of a file are part of the preview, and its patches restore the file', async () => {
  await create();
  const source = await publish(world, 'web');
  await reconcile();
  const file = 'clusters/edge/web/cm.yaml';
  const blob = gitCli(site, ['rev-parse', `main:${file}`]);
  const setEntry = (mode: string, path = file) => {
    const commit = 'commit refs/heads/main\ncommitter Eve <eve@example.com> 1700000000 +0000\ndata 4\nmode\n';
    gitCli(site, ['fast-import', '--quiet'], `${commit}from refs/heads/main^0\nM ${mode} ${blob} ${path}\n`);
  };
  for (const [mode, header] of [
    ['100755', 'old mode 100755\nnew mode 100644\n'],
    // Its text is the manifest, so that it is shown.
    ['120000', 'deleted file mode 120000\n'],
  ] as const) {
    setEntry(mode);
    const previewed = await preview(source);
    expect(previewed.targets).toMatchObject([
      { state: 'Changes', files: [{ path: file, change: 'Modified', patch: expect.stringContaining(header) }] },
    ]);
    const expected = await treeAfter(previewed);
    await reconcile();
    expect(gitCli(site, ['rev-parse', 'main^{tree}'])).toBe(expected);
    expect((await preview(source)).targets).toMatchObject([{ state: 'Unchanged', files: [] }]);
  }
  // Submodules are named.
  setEntry('160000');
  setEntry('160000', 'clusters/edge/web/more');
  expect((await preview(source)).targets[0]?.files).toEqual([
    { path: file, change: 'Modified', hidden: true, patch: '' },
    { path: 'clusters/edge/web/more', change: 'Removed', hidden: true, patch: '' },
  ]);
  await reconcile();
  // With a change of the content.
  setEntry('100755');
  await expectPreviewed(await next(source, 'w2', { 'cm.yaml': configMap('web', '2') }));
});

test('every target that selects the package is previewed by its settings; one can be named', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: hunter2\n';
  await create({ git: { repo: site, directory: 'a' } }, 'strict');
  await create({ git: { repo: site, directory: 'b' }, allowSecrets: true }, 'lenient');
  await create({ suspend: true }, 'asleep');
  await create({ git: { repo: site, branch: 'gone' } }, 'lost');
  await create({ git: { repo: join(world.folder, 'none.git') } }, 'broken');
  await create({ selector: { packages: ['db'] } }, 'other');
  await create({ pins: [{ repository: 'apps', package: 'web', revision: 7 }] }, 'pinned');
  const { name } = await world.draft('apps/web/w1', { 'secret.yaml': secret });
  const { targets } = await preview(name);
  expect(targets.map(({ target, state, reason }) => [target, state, reason])).toEqual([
    ['asleep', 'Refused', 'Suspended'],
    ['broken', 'Unreadable', expect.any(String)],
    ['lenient', 'Changes', undefined],
    ['lost', 'Refused', 'BranchMissing'],
    ['pinned', 'Refused', 'PinnedRevisionMissing'],
    ['strict', 'Refused', 'UnencryptedSecret'],
  ]);
  expect((await preview(name, 'other')).targets).toMatchObject([{ target: 'other', state: 'NotSelected', files: [] }]);
  await expect(preview(name, 'nowhere')).rejects.toMatchObject({ code: 'NotFound' });
});

test('a file of the branch that may contain a Secret is named, and its content is not shown', async () => {
  const secret = (value: string) =>
    `apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: ${value}\n`;
  await create({ allowSecrets: true });
  const source = await publish(world, 'web', '1', { 'secret.yaml': secret('old') });
  await reconcile();
  const found = 'clusters/edge/web/secret.yaml';
  await world.push(site, { [found]: secret('only-in-the-branch') });
  const draft = await next(source, 'w2', { 'secret.yaml': secret('new'), 'cm.yaml': configMap('web2') });
  const previewed = await preview(draft);
  expect(JSON.stringify(previewed)).not.toContain('only-in-the-branch');
  const files = previewed.targets[0]?.files ?? [];
  expect(files.find(({ path }) => path === found)).toMatchObject({ hidden: true, patch: '' });
  expect(files.some(({ hidden, patch }) => hidden === undefined && patch.includes('web2'))).toBe(true);
});

test('a target that the caller may not read shows nothing', async () => {
  await create();
  await create({ git: { repo: site, directory: 'b' } }, 'mine');
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
  const { targets } = await preview(name, undefined, async (target) => target.name === 'mine');
  expect(targets).toMatchObject([
    { target: 'edge', state: 'Unreadable', reason: 'Forbidden', files: [] },
    { target: 'mine', state: 'Changes' },
  ]);
  expect(targets[0]?.repo).toBeUndefined();
});

test('folders that the target is about to remove for other reasons are not part of the preview', async () => {
  const db = await publish(world, 'db');
  await publish(world, 'cache');
  await create();
  await reconcile();
  await world.store.update(db, { action: 'propose-deletion' }, ANNA);
  await world.store.update(db, { action: 'delete' }, ANNA);
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
  const { targets } = await preview(name);
  expect(targets[0]?.files.every(({ path }) => path.startsWith('clusters/edge/web/'))).toBe(true);
});

const quickstart = fileURLToPath(new URL('../../../examples/quickstart/packages', import.meta.url));

// Few of them, for speed; each has other kinds of objects.
test('real packages are delivered as previewed', skipFor(corpusMissing), async () => {
  await create({ allowSecrets: true, render: 'passthrough' });
  const packages = corpusPackages().filter((_, at) => at % 8 === 0);
  expect(packages.length).toBeGreaterThan(2);
  for (const [at, { files }] of packages.entries()) {
    // Gates in a Kptfile would close the proposal; it is not delivered.
    const texts = [...files].flatMap(([path, data]) => (path === 'Kptfile' ? [] : [[path, data.toString()]]));
    const { name } = await world.draft(`apps/p${at}/w1`, Object.fromEntries(texts));
    await expectPreviewed(name);
  }
});

test(
  'the packages of the quick start are delivered as previewed',
  skipFor(!existsSync(quickstart) && `no packages at ${quickstart}`),
  async () => {
    await create({ allowSecrets: true });
    for (const [at, folder] of packageFolders(quickstart).entries()) {
      const { name } = await world.draft(`apps/p${at}/w1`, packageFiles(folder));
      await expectPreviewed(name);
    }
  },
);
