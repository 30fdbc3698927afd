import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { notingReads } from '../../test/support/noting-reads.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantSetController } from './package-variant-set-controller.ts';

const UPSTREAM = { repo: 'blueprints', package: 'web' };

let bench: VariantBench;
/** The sets that were reconciled. */
let reconciled: string[];
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
  reconciled = [];
});
afterEach(() => bench.world[Symbol.asyncDispose]());

async function start(store: RevisionStore = bench.world.store): Promise<void> {
  const { client, clock, registry, manager } = bench.world;
  const noting = notingReads(client, packageVariantSetKind, (name) => reconciled.push(name));
  manager.addController(packageVariantSetController({ client: noting, store, clock, kinds: registry }));
  await manager.start();
}

const key = (name: string) => ({ namespace: 'default', name });
const create = (name: string, targets: readonly object[], more: object = {}) =>
  bench.world.client.create(packageVariantSetKind, {
    metadata: { name },
    spec: { upstream: UPSTREAM, targets: targets as never, ...more },
  });
const map = (name: string, labels: Record<string, string> = {}) =>
  bench.world.client.create(configMapKind, { metadata: { name, labels } });
const label = (repository: string, labels: Record<string, string | null>) =>
  bench.world.client.patch(repositoryKind, key(repository), { metadata: { labels } });
/** The sets that an action wakes. */
async function after(act: () => Promise<unknown>): Promise<string[]> {
  const { manager } = bench.world;
  await manager.idle();
  reconciled.length = 0;
  await act();
  await manager.idle();
  return [...new Set(reconciled)].sort();
}

test('an event wakes only the sets that it concerns', async () => {
  const { client, store } = bench.world;
  await start();
  const select = (more: object) => ({ objectSelector: { apiVersion: 'v1', kind: 'ConfigMap', ...more } });
  await create('a', [select({ matchLabels: { type: 'a' } })]);
  await create('b', [select({ matchLabels: { type: 'b' } })]);
  await create('named', [select({ name: 'third' })]);
  await create('matching', [select({ matchExpressions: [{ key: 'tier', operator: 'Exists' }] })]);
  const other = await bench.world.draft('blueprints/api/w1');
  await bench.world.publish(other.name);
  await create('api', [{ repositories: [{ name: 'edge' }] }], { upstream: { repo: 'blueprints', package: 'api' } });
  expect(await after(() => map('site', { type: 'a' }))).toEqual(['a']);
  expect(await after(() => client.patch(configMapKind, key('site'), { data: { x: 'y' } }))).toEqual([]);
  expect(await after(() => client.patch(configMapKind, key('site'), { metadata: { labels: { type: 'b' } } }))).toEqual([
    'a',
    'b',
  ]);
  expect(await after(() => map('unrelated'))).toEqual([]);
  expect(await after(() => map('third'))).toEqual(['named']);
  expect(await after(() => map('fourth', { tier: 'gold' }))).toEqual(['matching']);
  const blueprint = () => bench.publishBlueprint({ 'a.yaml': 'a: 1\n' });
  expect(await after(blueprint)).toEqual(['a', 'b', 'matching', 'named']);
  expect(await after(() => bench.world.draft('edge/unrelated/w1'))).toEqual([]);
  const { items } = await client.list(packageVariantKind, { namespace: 'default' });
  const [variant] = items.filter(({ metadata }) => metadata.name.startsWith('api'));
  expect(await after(() => client.delete(packageVariantKind, key(variant?.metadata.name ?? '')))).toEqual(['api']);
  // Without its latest revision, an upstream package has another one.
  await client.delete(packageVariantSetKind, key('api'));
  const end = (action: 'propose-deletion' | 'delete') => store.update('blueprints.api.w1', { action }, ANNA);
  await create('late', [select({ name: 'none' })], { upstream: { ...UPSTREAM, package: 'api', workspaceName: 'w1' } });
  expect(await after(() => end('propose-deletion'))).toEqual(['late']);
  expect(await after(() => end('delete'))).toEqual(['late']);
  const { status } = await client.get(packageVariantSetKind, key('late'));
  expect(status?.conditions?.[0]?.message).toContain('could not find upstream package revision blueprints/api with');
});

test('objects of a kind are followed in a namespace while a set there names it', async () => {
  const { client, manager } = bench.world;
  const watch = vi.spyOn(client, 'watch');
  const watches = () =>
    watch.mock.calls.filter(
      ([kind, { namespace, signal } = {}]) => kind.kind === 'ConfigMap' && namespace !== undefined && !signal?.aborted,
    );
  await start();
  const targets = [{ objectSelector: { apiVersion: 'v1', kind: 'ConfigMap', name: 'site' } }];
  for (const name of ['one', 'other']) await create(name, targets);
  await manager.idle();
  expect(watches()).toHaveLength(1);
  await client.delete(packageVariantSetKind, key('one'));
  expect(await after(() => map('site'))).toEqual(['other']);
  const spec = { targets: [{ repositories: [{ name: 'edge' }] }] };
  await client.patch(packageVariantSetKind, key('other'), { spec });
  await manager.idle();
  expect(watches()).toEqual([]);
  await create('late', targets);
  await manager.idle();
  expect(watches()).toHaveLength(1);
  expect(await after(() => client.delete(configMapKind, key('site')))).toEqual(['late']);
  await client.delete(packageVariantSetKind, key('late'));
  await manager.idle();
  expect(watches()).toEqual([]);
});

// Each of them is reconciled before the first event: a thousand took longer than a test may on a loaded machine, and prove no more.
test('of 100 sets, an event of a repository wakes those that select it or read it in an expression', async () => {
  const { client } = bench.world;
  await bench.world.register('west');
  const sets = Array.from({ length: 96 }, (_, index) => `set-${index}`);
  // Their upstream package does not exist, so that nothing else has to be done for them.
  const upstream = { repo: 'blueprints', package: 'none' };
  for (const [index, name] of sets.entries())
    await create(name, [{ repositories: [{ name: 'edge', packageNames: [name] }], template: {} }], {
      upstream: index < 10 ? UPSTREAM : upstream,
    });
  await create('selecting', [{ repositorySelector: { matchLabels: { site: 'west' } } }]);
  const repositories = [{ name: 'edge' }];
  await create('fixed', [{ repositories, template: { downstream: { repo: 'west', package: 'fixed' } } }]);
  const repoExpr = "target.repo == 'edge' ? 'we' + 'st' : 'edge'";
  await create('computed', [{ repositories, template: { downstream: { repoExpr, package: 'computed' } } }]);
  await create('waiting', [{ repositories: [{ name: 'new' }], template: {} }]);
  await start();
  expect(await after(() => label('west', { tier: 'gold' }))).toEqual(['computed', 'fixed']);
  expect(await after(() => label('west', { site: 'west' }))).toEqual(['computed', 'fixed', 'selecting']);
  expect(await after(() => label('blueprints', { tier: 'gold' }))).toEqual([]);
  expect(await after(() => label('edge', { tier: 'gold' }))).toEqual(sets.slice(0, 10));
  expect(await after(() => bench.world.register('new'))).toEqual(['waiting']);
  const { status } = await client.get(packageVariantSetKind, key('waiting'));
  expect(status?.conditions?.[1]).toMatchObject({ type: 'Ready', status: 'True' });
});

test('a set waits for its upstream repository until that opens, and keeps its state while the repository opens again', async () => {
  const { client, store } = bench.world;
  const state = async () => {
    const { status } = await client.get(packageVariantSetKind, key('fleet'));
    return status?.conditions?.map(({ type, status: value, message }) => `${type}=${value}: ${message}`) ?? [];
  };
  let isOpening = true;
  const arrivals: ((id: string) => void)[] = [];
  const opening = new Proxy(store, {
    get: (object, property) => {
      if (property === 'openingError')
        return (id: string) => (isOpening ? new SluiceError('Unavailable', `${id} opens`) : undefined);
      if (property === 'onArrival') return (listener: (id: string) => void) => void arrivals.push(listener);
      const value = Reflect.get(object, property) as unknown;
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
  const arrive = (id: string) => {
    for (const listener of arrivals) listener(id);
  };
  await start(opening);
  await create('fleet', [{ repositories: [{ name: 'edge' }] }]);
  await bench.world.manager.idle();
  expect((await state())[0]).toBe('Stalled=True: default/blueprints opens');
  isOpening = false;
  expect(await after(async () => arrive('default/edge'))).toEqual([]);
  expect(await after(async () => arrive('default/blueprints'))).toEqual(['fleet']);
  const reached = await state();
  expect(reached[1]).toContain('Ready=True');
  isOpening = true;
  expect(await after(() => bench.publishBlueprint({ 'a.yaml': 'a: 1\n' }))).toEqual(['fleet']);
  expect(await state()).toEqual(reached);
});

test('a kind that is defined again is followed again', async () => {
  const { registry, manager, clock } = bench.world;
  await start();
  const objectSelector = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type: 'a' } };
  await create('a', [{ objectSelector, template: { downstream: { repo: 'edge' } } }]);
  const withdraw = async () => {
    registry.unregister(configMapKind);
    manager.release(configMapKind);
  };
  expect(await after(withdraw)).toEqual(['a']);
  const log = new EventLog({ clock });
  registry.register(new MemoryStorage(configMapKind, { clock, log }) as never);
  await after(async () => undefined);
  expect(await after(() => map('site', { type: 'a' }))).toEqual(['a']);
});
