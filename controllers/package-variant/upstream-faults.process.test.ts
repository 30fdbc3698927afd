import { execFileSync } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { DEPLOYMENT, type VariantBench, variantBench } from '../../test/support/variant-bench.ts';

const KEY = { namespace: 'default', name: 'web-edge' };
const DRAFT = 'edge.web.packagevariant-1';

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const change = (spec: object) => bench.world.client.patch(packageVariantKind, KEY, { spec });
const editDraft = (path: string, text: string) =>
  bench.world.store.change(DRAFT, { files: new Map([[path, Buffer.from(text)]]) }, ANNA);
const addressOf = async (name: string) =>
  (await bench.world.client.get(repositoryKind, { namespace: 'default', name })).spec.git?.repo ?? '';
async function unregister(name: string): Promise<void> {
  await bench.world.client.delete(repositoryKind, { namespace: 'default', name });
  await bench.world.store.remove(`default/${name}`);
}

test('an upstream revision that is deleted, or whose repository is unregistered, is reported, and the draft stays', async () => {
  const { world } = bench;
  await bench.variant();
  await bench.reconcile();
  const { commit } = world.store.get(DRAFT);
  await world.store.update('blueprints.web.w1', { action: 'propose-deletion' }, ANNA);
  // It is published until its deletion is approved, which clones prevent.
  await bench.reconcile();
  expect((await bench.conditions())[0]).toContain('Stalled=False');
  await change({ upstream: { workspaceName: 'w7' } });
  await bench.reconcile();
  expect((await bench.conditions())[0]).toContain(
    'could not find upstream package revision blueprints/web with workspaceName w7',
  );
  await change({ upstream: { workspaceName: null } });
  await unregister('blueprints');
  await bench.reconcile();
  expect((await bench.conditions())[0]).toContain('repository blueprints is not registered');
  expect(world.store.get(DRAFT).commit).toBe(commit);
});

test('an upstream whose tag and folder are removed in Git is reported; the draft and publications stay, and it may come back', async () => {
  const { world } = bench;
  const repo = await addressOf('blueprints');
  const git = (...args: string[]) => execFileSync('git', ['-C', repo, ...args], { encoding: 'utf8' }).trim();
  const read = async () => {
    world.store.announce(await world.store.repository('default/blueprints').refresh());
    await bench.reconcile();
  };
  await bench.variant();
  await bench.reconcile();
  await editDraft('mine.yaml', 'a: 1\n');
  const { commit } = world.store.get(DRAFT);
  const [tag, main] = [git('rev-parse', 'refs/tags/web/v1'), git('rev-parse', 'main')];
  git('update-ref', '-d', 'refs/tags/web/v1');
  git('update-ref', 'refs/heads/main', git('rev-list', '--max-parents=0', 'main'));
  await read();
  expect(world.store.list({ repository: 'blueprints', package: 'web' })).toEqual([]);
  expect(await bench.conditions()).toEqual([
    'Stalled=True/ValidationError: could not find upstream package revision blueprints/web; publish the package, or change spec.upstream',
    'Ready=False/Error: invalid packagevariant object',
  ]);
  expect(world.store.get(DRAFT).commit).toBe(commit);
  // What was cloned can be published without its upstream.
  await world.publish(DRAFT);
  await bench.reconcile();
  expect(bench.downstream()).toEqual(['packagevariant-1 Published v1']);
  git('update-ref', 'refs/tags/web/v1', tag);
  git('update-ref', 'refs/heads/main', main);
  await read();
  expect((await bench.conditions())[1]).toContain('Ready=True');
  expect(bench.downstream()).toEqual(['packagevariant-1 Published v1']);
  await bench.publishBlueprint({ 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
  await bench.reconcile();
  expect(bench.downstream()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
  expect(await bench.text('edge.web.packagevariant-2', 'mine.yaml')).toBe('a: 1\n');
});

test('a branch that a variant follows and that is removed in Git is reported, and the draft stays', async () => {
  const { world } = bench;
  const repo = await addressOf('blueprints');
  await bench.variant({ upstream: { repo: 'blueprints', package: 'web', workspaceName: 'main' } });
  await bench.reconcile();
  const { commit } = world.store.get(DRAFT);
  execFileSync('git', ['-C', repo, 'update-ref', '-d', 'refs/heads/main']);
  world.store.announce(await world.store.repository('default/blueprints').refresh());
  await bench.reconcile();
  expect((await bench.conditions())[0]).toContain(
    'could not find upstream package revision blueprints/web with workspaceName main',
  );
  expect(world.store.get(DRAFT).commit).toBe(commit);
});

test('an upstream package that moved to another folder becomes an upgrade with the changes of users', async () => {
  const { world } = bench;
  await bench.variant();
  await bench.reconcile();
  await editDraft('web.yaml', (await bench.text(DRAFT, 'web.yaml')).replace('replicas: 1', 'replicas: 5'));
  const moved = await world.draft('blueprints/shops/web/w1', { 'web.yaml': DEPLOYMENT.replace('web:v1', 'web:v2') });
  await world.publish(moved.name);
  await change({ upstream: { package: 'shops/web' } });
  await bench.reconcile();
  expect(world.store.get(DRAFT).kptfile?.upstreamLock?.git).toMatchObject({
    directory: 'shops/web',
    ref: 'shops/web/v1',
  });
  const text = await bench.text(DRAFT, 'web.yaml');
  expect(text).toContain('replicas: 5');
  expect(text).toContain('image: web:v2');
  expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
});

test('a repository that is registered by another name is the same upstream', async () => {
  const { world } = bench;
  await bench.variant();
  await bench.reconcile();
  const { commit } = world.store.get(DRAFT);
  const repo = await addressOf('blueprints');
  await unregister('blueprints');
  await world.register('catalog', { repo });
  await change({ upstream: { repo: 'catalog' } });
  await bench.reconcile();
  expect((await bench.conditions())[1]).toContain('Ready=True');
  expect(world.store.get(DRAFT).commit).toBe(commit);
});

test('a branch that was force-pushed is merged; while the earlier commit is missing this is reported, and nothing is changed', async () => {
  const { world } = bench;
  const repo = await addressOf('blueprints');
  await bench.variant({ upstream: { repo: 'blueprints', package: 'web', workspaceName: 'main' } });
  await bench.reconcile();
  await editDraft('mine.yaml', 'a: 1\n');
  const git = (...args: string[]) => execFileSync('git', ['-C', repo, ...args], { encoding: 'utf8' }).trim();
  const kptfile = git('show', 'main:web/Kptfile');
  git('update-ref', 'refs/heads/main', git('rev-list', '--max-parents=0', 'main'));
  await world.push(repo, { 'web/Kptfile': `${kptfile}\n`, 'web/web.yaml': DEPLOYMENT.replace('web:v1', 'web:v9') });
  world.store.announce(await world.store.repository('default/blueprints').refresh());
  await bench.reconcile();
  expect(await bench.text(DRAFT, 'web.yaml')).toContain('image: web:v9');
  expect(await bench.text(DRAFT, 'mine.yaml')).toBe('a: 1\n');
  const { commit, kptfile: locked } = world.store.get(DRAFT);
  expect(locked?.upstreamLock?.git?.commit).toBe(git('rev-parse', 'main'));

  // The lock names a commit that no repository has any more.
  const lost = 'd'.repeat(40);
  const text = await bench.text(DRAFT, 'Kptfile');
  await editDraft('Kptfile', text.replaceAll(git('rev-parse', 'main'), lost));
  const before = world.store.get(DRAFT).commit;
  expect(before).not.toBe(commit);
  await bench.reconcile().catch(() => undefined);
  expect((await bench.conditions())[1]).toContain(lost);
  expect(world.store.get(DRAFT).commit).toBe(before);
});

test('an upstream tag that was moved is merged like a new revision, with the changes of users', async () => {
  const { world } = bench;
  const repo = await addressOf('blueprints');
  await bench.variant();
  await bench.reconcile();
  await editDraft('mine.yaml', 'a: 1\n');
  const git = (...args: string[]) => execFileSync('git', ['-C', repo, ...args], { encoding: 'utf8' }).trim();
  const move = async (image: string) => {
    const changed = { 'web/web.yaml': DEPLOYMENT.replace('web:v1', image) };
    await world.push(repo, changed, 'side', 'refs/heads/main');
    git('update-ref', 'refs/tags/web/v1', 'refs/heads/side');
    world.store.announce(await world.store.repository('default/blueprints').refresh());
    await bench.reconcile();
  };
  await move('web:v8');
  expect(await bench.text(DRAFT, 'web.yaml')).toContain('image: web:v8');
  expect(await bench.text(DRAFT, 'mine.yaml')).toBe('a: 1\n');
  expect(world.store.get(DRAFT).kptfile?.upstreamLock?.git).toMatchObject({
    ref: 'web/v1',
    commit: git('rev-parse', 'refs/tags/web/v1'),
  });
  await world.publish(DRAFT);
  await move('web:v9');
  expect(bench.downstream()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Draft']);
  const next = 'edge.web.packagevariant-2';
  expect(await bench.text(next, 'web.yaml')).toContain('image: web:v9');
  expect(await bench.text(next, 'mine.yaml')).toBe('a: 1\n');
  await bench.reconcile();
  expect(bench.downstream()).toHaveLength(2);
});

test('a downstream repository that cannot be written is reported, and gets the draft when it can', async () => {
  const repo = await addressOf('edge');
  await rename(repo, `${repo}.away`);
  await bench.variant();
  await bench.reconcile().catch(() => undefined);
  expect((await bench.conditions())[1]).toMatch(/^Ready=False\/Error: /);
  expect(bench.downstream()).toEqual([]);
  await rename(`${repo}.away`, repo);
  await bench.reconcile();
  expect((await bench.conditions())[1]).toContain('Ready=True');
  expect(bench.downstream()).toEqual(['packagevariant-1 Draft']);
});
