import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind, SET_LABEL } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantSetController } from '../package-variant-set/package-variant-set-controller.ts';
import { packageVariantController } from './package-variant-controller.ts';

const KEY = { namespace: 'default', name: 'fleet' };
const PACKAGES = ['a', 'b', 'c', 'd', 'e'];

let world: Fixture;
beforeEach(async () => {
  world = await fixture();
  await variantBench(world);
});
afterEach(() => world[Symbol.asyncDispose]());

async function start(): Promise<void> {
  const { client, store, clock, registry } = world;
  const options = { client, store, clock, kinds: registry };
  world.manager.addController(packageVariantController(options));
  world.manager.addController(packageVariantSetController(options));
  await world.manager.start();
}

async function createSet(maxDrafts: number): Promise<void> {
  const targets = [{ repositories: [{ name: 'edge', packageNames: PACKAGES }] }];
  const spec = { upstream: { repo: 'blueprints', package: 'web' }, targets, maxDrafts };
  await world.client.create(packageVariantSetKind, { metadata: { name: 'fleet' }, spec });
}

function open(): string[] {
  return world.store
    .list({ repository: 'edge' })
    .filter(({ revision }) => revision === 0)
    .map(({ key }) => key.package);
}

async function counts(): Promise<unknown> {
  return (await world.client.get(packageVariantSetKind, KEY)).status?.variants;
}

test('variants wait while others of their set have too many open drafts, and go on when there is room', async () => {
  await start();
  await createSet(2);
  await expect.poll(counts).toEqual({ total: 5, ready: 2, waiting: 3, failing: 0 });
  expect(open()).toHaveLength(2);
  const { items } = await world.client.list(packageVariantKind, { namespace: 'default' });
  const messages = items.flatMap(
    ({ status }) => status?.conditions?.filter(({ reason }) => reason === 'Waiting') ?? [],
  );
  expect(messages.map(({ message }) => message)).toEqual(
    Array.from({ length: 3 }, () =>
      expect.stringContaining('variants of PackageVariantSet fleet have 2 open drafts, its spec.maxDrafts permits 2'),
    ),
  );

  // One is published, and one deleted, which its variant creates again if there is room.
  const [first = '', second = ''] = open();
  await world.publish(`edge.${first}.packagevariant-1`);
  await expect.poll(() => open().length).toBe(2);
  expect(open()).not.toContain(first);
  await world.manager.idle();
  await world.store.update(`edge.${second}.packagevariant-1`, { action: 'delete' }, ANNA);
  await expect.poll(() => open().length).toBe(2);
  await world.manager.idle();
  expect(open()).toHaveLength(2);

  await world.client.patch(packageVariantSetKind, KEY, { spec: { maxDrafts: 10 } });
  await expect.poll(counts).toEqual({ total: 5, ready: 5, waiting: 0, failing: 0 });
  expect(open()).toHaveLength(4);
});

test('after a restart the drafts that are open count', async () => {
  await createSet(1);
  const { client, store, clock, registry } = world;
  const options = { client, store, clock, kinds: registry };
  const run = (controller: ReturnType<typeof packageVariantController>, name: string) =>
    controller.reconcile({ ...KEY, name }, { signal: new AbortController().signal, failures: 0 });
  await run(packageVariantSetController(options), 'fleet');
  await run(packageVariantController(options), 'fleet-edge-c');
  const restarted = packageVariantController(options);
  await run(restarted, 'fleet-edge-a');
  await run(restarted, 'fleet-edge-c');
  expect(open()).toEqual(['c']);
  await world.client.delete(packageVariantKind, { ...KEY, name: 'fleet-edge-c' });
  await run(restarted, 'fleet-edge-c');
  await run(restarted, 'fleet-edge-a');
  expect(open()).toEqual(['a']);
});

test('variants without the label of their set count, and get it back', async () => {
  await start();
  await createSet(2);
  await expect.poll(counts).toEqual({ total: 5, ready: 2, waiting: 3, failing: 0 });
  const { items } = await world.client.list(packageVariantKind, { namespace: 'default' });
  for (const variant of items)
    await world.client.patch(
      packageVariantKind,
      { ...KEY, name: variant.metadata.name },
      { metadata: { labels: null } },
    );
  const labelSelector = {
    matchLabels: { [SET_LABEL]: (await world.client.get(packageVariantSetKind, KEY)).metadata.uid },
  };
  await expect
    .poll(
      async () => (await world.client.list(packageVariantKind, { namespace: 'default', labelSelector })).items.length,
    )
    .toBe(5);
  await world.manager.idle();
  expect(open()).toHaveLength(2);
});

test('a variant counts for its set also before it has its label again', async () => {
  await createSet(1);
  const { client, store, clock, registry } = world;
  const options = { client, store, clock, kinds: registry };
  const run = (controller: ReturnType<typeof packageVariantController>, name: string) =>
    controller.reconcile({ ...KEY, name }, { signal: new AbortController().signal, failures: 0 });
  await run(packageVariantSetController(options), 'fleet');
  await run(packageVariantController(options), 'fleet-edge-c');
  for (const name of ['fleet-edge-a', 'fleet-edge-c'])
    await client.patch(packageVariantKind, { ...KEY, name }, { metadata: { labels: null } });
  await run(packageVariantController(options), 'fleet-edge-a');
  expect(open()).toEqual(['c']);
});
