import { afterEach, beforeEach, expect, test } from 'vitest';
import { conditionsOf } from '../kptfile-schema/index.ts';
import { DeliveredPackages } from '../src/delivery/delivered/delivered-packages.ts';
import { packageVariantKind } from '../src/resource/kinds/porch/package-variant.ts';
import { type Repository, repositoryKind } from '../src/resource/kinds/porch/repository.ts';
import { ANNA, type Fixture, fixture } from '../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../test/support/variant-bench.ts';
import { dependencyRefreshController } from './dependency-refresh/dependency-refresh-controller.ts';
import { packageVariantController } from './package-variant/package-variant-controller.ts';
import { dependencyResolver } from './revision/resolvers/dependency/dependency-resolver.ts';
import { revisionController } from './revision/revision-controller.ts';

let world: Fixture;
let bench: VariantBench;
beforeEach(async () => {
  world = await fixture();
  bench = await variantBench(world);
  const { client, store, clock, manager, registry } = world;
  const repository: Repository = await client.get(repositoryKind, { namespace: 'default', name: 'edge' });
  const options = {
    ...{ store, clock, client, quietMs: 0, delivered: DeliveredPackages.from([]) },
    ...{ targets: () => [], unread: async () => [], repositoryOf: () => repository },
  };
  const { resolver, sources } = dependencyResolver(options);
  manager.addController(revisionController({ client, store, clock, resolvers: [resolver], sources }));
  manager.addController(dependencyRefreshController(options));
  manager.addController(packageVariantController({ client, store, clock, kinds: registry }));
  await manager.start();
  await world.publish((await world.draft('edge/other/w1')).name);
});
afterEach(() => world[Symbol.asyncDispose]());

const place = (path: string, repo = 'edge') => ({ repo, package: path });

const DEPENDENCY =
  'apiVersion: req.nephio.org/v1alpha1\nkind: Dependency\nmetadata:\n  name: clone\nspec:\n  packageName: b\n  onProviderChange: Propose\n';
const CONDITION = 'req.nephio.org/v1alpha1.Dependency.clone';
/** What the clone has instead of it, as a function of its pipeline writes it. */
const OTHER = DEPENDENCY.replace('packageName: b', 'packageName: other');

const edit = async (path: string, workspace: string, text: string) => {
  const latest = world.store.list({ repository: 'edge', package: path }).findLast((row) => row.latest);
  const source = { type: 'copy', source: latest?.name ?? '' } as const;
  const { name } = await world.store.create('edge', { package: path, workspace, source }, ANNA);
  await world.store.change(name, { files: new Map([['d.yaml', Buffer.from(text)]]) }, ANNA);
  await world.manager.idle();
  return name;
};
/** The clone requires another package. */
const publishClone = async () => {
  await bench.variant({ upstream: place('a'), downstream: place('b') }, 'b');
  await world.manager.idle();
  const [draft] = world.store.list({ repository: 'edge', package: 'b' });
  await world.store.change(draft?.name ?? '', { files: new Map([['d.yaml', Buffer.from(OTHER)]]) }, ANNA);
  await world.manager.idle();
  await world.publish(draft?.name ?? '');
  await world.manager.idle();
};
/** Publishes each draft whose conditions are True. */
const publishOpen = async (rounds: number) => {
  for (let round = 0; round < rounds; round += 1) {
    await world.manager.idle();
    for (const row of world.store.list({ repository: 'edge', lifecycle: 'Draft' })) {
      const condition = row.kptfile && conditionsOf(row.kptfile).get(CONDITION);
      if (condition !== undefined && condition.status !== 'True') continue;
      await world.publish(row.name);
    }
  }
  await world.manager.idle();
};

test('a package that requires the clone of itself is a ring, which its condition names, so that it is not published', async () => {
  await world.publish((await world.draft('edge/a/w1')).name);
  await publishClone();
  const name = await edit('a', 'w2', DEPENDENCY);
  const condition = () => conditionsOf(world.store.get(name).kptfile as never).get(CONDITION);
  expect(condition()).toMatchObject({
    ...{ status: 'False', reason: 'DependencyCycle' },
    message: expect.stringMatching(
      /^edge\/a requires edge\/b, which is cloned from edge\/a; none of them can be first/,
    ),
  });
  expect((await bench.conditions('b')).join()).not.toContain('Stalled=True');
  await world.client.patch(
    packageVariantKind,
    { namespace: 'default', name: 'b' },
    { spec: { upstream: place('web', 'blueprints') } },
  );
  await world.manager.idle();
  expect(condition()?.status).toBe('True');
});

test('a package that requires the clone of itself is a ring, which its variant names, if the variant is created last', async () => {
  await world.publish((await world.draft('edge/b/w1')).name);
  const draft = await world.draft('edge/a/w1', { 'd.yaml': DEPENDENCY });
  await world.manager.idle();
  await world.publish(draft.name);
  await bench.variant({ upstream: place('a'), downstream: place('b'), adoptionPolicy: 'adoptExisting' }, 'b');
  await publishOpen(6);
  expect(bench.downstream('a')).toHaveLength(1);
  expect(bench.downstream('b')).toHaveLength(1);
  expect((await bench.conditions('b'))[0]).toContain(
    'Stalled=True/ValidationError: package edge/b is cloned from edge/a, which requires edge/b, and each of their revisions',
  );
  const free = await edit('a', 'w2', OTHER);
  await world.publish(free);
  await world.manager.idle();
  expect((await bench.conditions('b')).join()).not.toContain('Stalled=True');
});
