import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { type Fixture, fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantController } from './package-variant-controller.ts';

let world: Fixture;
let bench: VariantBench;
beforeEach(async () => {
  world = await fixture();
  bench = await variantBench(world);
  const { client, store, clock, registry } = world;
  const sharing = ({ name }: ObjectKey) => (name === 'edge' ? [SITES] : name === 'sites' ? [EDGE] : []);
  world.manager.addController(packageVariantController({ client, store, clock, kinds: registry, sharing }));
  await world.manager.start();
});
afterEach(() => world[Symbol.asyncDispose]());

/** Two registrations of one repository. */
const EDGE = { namespace: 'default', name: 'edge' };
const SITES = { namespace: 'team', name: 'sites' };

const place = (path: string, repo = 'edge') => ({ repo, package: path });
const clone = (upstream: object, path: string, name = path) =>
  bench.variant({ upstream, downstream: place(path) }, name);
const follow = (name: string, upstream: object) =>
  world.client.patch(packageVariantKind, { namespace: 'default', name }, { spec: { upstream } });
const BLUEPRINT = place('web', 'blueprints');
const RING = ['a', 'b', 'c'];

/** Publishes each draft, as a policy does that approves by itself. */
async function publishAll(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await world.manager.idle();
    for (const path of RING)
      for (const one of world.store.list({ repository: 'edge', package: path }))
        if (one.lifecycle === 'Draft') await world.publish(one.name);
  }
  await world.manager.idle();
}

test('variants that form a ring create nothing, say so, and go on once the ring is open again', async () => {
  await clone(BLUEPRINT, 'a');
  await clone(place('a'), 'b');
  await clone(place('b'), 'c');
  await publishAll(3);
  for (const path of RING) expect(bench.downstream(path)).toEqual(['packagevariant-1 Published v1']);

  await follow('a', place('c'));
  await publishAll(8);
  for (const path of RING) expect(bench.downstream(path)).toEqual(['packagevariant-1 Published v1']);
  const expected = {
    a: 'edge/a is cloned from edge/c, which is cloned from edge/b, which is cloned from edge/a, and each',
    b: 'edge/b is cloned from edge/a, which is cloned from edge/c, which is cloned from edge/b, and each',
    c: 'edge/c is cloned from edge/b, which is cloned from edge/a, which is cloned from edge/c, and each',
  };
  for (const [name, ring] of Object.entries(expected)) {
    const [stalled = '', ready = ''] = await bench.conditions(name);
    expect(stalled).toContain(`Stalled=True/ValidationError: package ${ring}`);
    expect(ready).toContain('Ready=False');
  }

  await follow('a', BLUEPRINT);
  await bench.publishBlueprint({ 'more.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n' });
  await publishAll(8);
  for (const path of RING) {
    expect(bench.downstream(path).sort()).toEqual(['packagevariant-1 Published v1', 'packagevariant-2 Published v2']);
    expect((await bench.conditions(path)).join()).toContain('Ready=True');
  }
});

test('a variant that is deleted opens the ring', async () => {
  await clone(BLUEPRINT, 'a');
  await clone(place('a'), 'b');
  await publishAll(2);
  await follow('a', place('b'));
  await publishAll(2);
  expect((await bench.conditions('b'))[0]).toContain('Stalled=True');
  await world.client.patch(
    packageVariantKind,
    { namespace: 'default', name: 'a' },
    { spec: { deletionPolicy: 'orphan' } },
  );
  await world.client.delete(packageVariantKind, { namespace: 'default', name: 'a' });
  await world.manager.idle();
  expect((await bench.conditions('b')).join()).toContain('Ready=True');
});

test('variants of two namespaces form a ring by the packages of one repository', async () => {
  const { client, manager } = world;
  const { spec } = await client.get(repositoryKind, EDGE);
  const git = { repo: spec.git?.repo ?? '', directory: 'x' };
  await client.create(repositoryKind, { metadata: SITES, spec: { git } });
  const names = { namespace: SITES.namespace, name: 'b' };
  const between = { upstream: place('a', 'sites'), downstream: place('b', 'sites') };
  await client.create(packageVariantKind, { metadata: names, spec: between });
  await clone(place('x/b'), 'x/a', 'a');
  await manager.idle();
  expect((await bench.conditions('a'))[0]).toContain(
    'Stalled=True/ValidationError: package edge/x/a is cloned from edge/x/b, which is cloned from edge/x/a, and each',
  );
  const { status } = await client.get(packageVariantKind, names);
  expect(status?.conditions?.[0]).toMatchObject({
    status: 'True',
    message: expect.stringContaining('sites/b is cloned from sites/a, which is cloned from sites/b'),
  });
  await client.delete(repositoryKind, SITES);
  await manager.idle();
  expect((await bench.conditions('a'))[0]).not.toContain('is cloned from');
});

test('a variant whose downstream package is its upstream is refused', async () => {
  await expect(clone(place('a'), 'a')).rejects.toThrow(
    'spec.downstream.package: Invalid value: "a": is the package of spec.upstream; choose another package',
  );
});
