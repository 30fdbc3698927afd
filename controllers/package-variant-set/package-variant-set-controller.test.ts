import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantController } from '../package-variant/package-variant-controller.ts';
import { type PackageVariantSetOptions, packageVariantSetController } from './package-variant-set-controller.ts';

const UPSTREAM = { repo: 'blueprints', package: 'web' };

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
});
afterEach(() => bench.world[Symbol.asyncDispose]());

function controllerOn(options: Partial<PackageVariantSetOptions> = {}) {
  const { client, store, clock, registry } = bench.world;
  const recorder = bench.world.recorder('controller:package-variant-set');
  const controller = packageVariantSetController({ client, store, clock, kinds: registry, recorder, ...options });
  return (name = 'fleet') =>
    controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
}
const reconcile = (name?: string) => controllerOn()(name);
const create = (targets: readonly object[], more: object = {}, name = 'fleet') =>
  bench.world.client.create(packageVariantSetKind, {
    metadata: { name },
    spec: { upstream: UPSTREAM, targets: targets as never, ...more },
  });
const change = (spec: object, name = 'fleet') =>
  bench.world.client.patch(packageVariantSetKind, { namespace: 'default', name }, { spec } as never);
const variants = async () => (await bench.world.client.list(packageVariantKind, { namespace: 'default' })).items;
const downstreams = async () =>
  (await variants()).map(
    ({ metadata, spec }) => `${metadata.name}: ${spec.downstream.repo}/${spec.downstream.package}`,
  );
const ready = async (name = 'fleet') => {
  const { status } = await bench.world.client.get(packageVariantSetKind, { namespace: 'default', name });
  const texts = (status?.conditions ?? []).map(
    ({ type, status: value, reason, message }) => `${type}=${value}/${reason}: ${message}`,
  );
  return texts;
};
const map = (name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}) =>
  bench.world.client.create(configMapKind, { metadata: { name, labels, annotations } });

describe('targets', () => {
  test('name repositories, and packages in them', async () => {
    const set = await create([{ repositories: [{ name: 'edge' }, { name: 'west', packageNames: ['a', 'shops/b'] }] }]);
    await reconcile();
    expect(await downstreams()).toEqual([
      'fleet-edge-web: edge/web',
      'fleet-west-a: west/a',
      expect.stringMatching(/^fleet-west-shops-b-[0-9a-f]{8}: west\/shops\/b$/),
    ]);
    const [first] = await variants();
    expect(first).toMatchObject({
      metadata: {
        labels: { 'config.porch.kpt.dev/packagevariantset': set.metadata.uid },
        ownerReferences: [{ kind: 'PackageVariantSet', name: 'fleet', uid: set.metadata.uid, controller: true }],
      },
      spec: { upstream: UPSTREAM, adoptionPolicy: 'adoptNone', deletionPolicy: 'delete' },
    });
    expect(await ready()).toEqual([
      'Stalled=False/Valid: all validation checks passed',
      'Ready=True/Reconciled: package variants successfully reconciled',
    ]);
    expect(await bench.world.events('fleet')).toEqual(['Reconciled: variants: 3 created']);
    const before = await variants();
    await reconcile();
    expect(await variants()).toEqual(before);
  });

  test('select repositories by labels', async () => {
    await bench.world.client.patch(
      repositoryKind,
      { namespace: 'default', name: 'edge' },
      { metadata: { labels: { site: 'edge' } } },
    );
    await create([{ repositorySelector: { matchExpressions: [{ key: 'site', operator: 'In', values: ['edge'] }] } }]);
    await reconcile();
    expect(await downstreams()).toEqual(['fleet-edge-web: edge/web']);
  });

  test('select objects of any kind by labels and name', async () => {
    await map('edge', { type: 'cluster' });
    await map('west', { type: 'cluster' });
    await map('other');
    const objectSelector = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type: 'cluster' } };
    await create([{ objectSelector }]);
    await reconcile();
    expect(await downstreams()).toEqual(['fleet-edge-web: edge/web', 'fleet-west-web: west/web']);
    await change({ targets: [{ objectSelector: { ...objectSelector, name: 'west' } }] });
    await reconcile();
    expect(await downstreams()).toEqual(['fleet-west-web: west/web']);
  });

  test('of a kind that is not served, or is not in namespaces, are reported, and nothing is deleted', async () => {
    await create([{ repositories: [{ name: 'edge' }] }]);
    await reconcile();
    for (const [apiVersion, kind] of [
      ['x.dev/v1', 'Cluster'],
      ['v1', 'Namespace'],
    ] as const) {
      await change({ targets: [{ objectSelector: { apiVersion, kind } }] });
      await reconcile();
      expect((await ready())[0]).toBe(
        `Stalled=True/NoMatchingTargets: spec.targets[0]: no namespaced objects of type ${apiVersion}.${kind} are served here; define the kind`,
      );
    }
    expect(await downstreams()).toEqual(['fleet-edge-web: edge/web']);
  });

  test('without an upstream package nothing is done', async () => {
    await create([{ repositories: [{ name: 'edge' }] }], { upstream: { ...UPSTREAM, revision: 7 } });
    await reconcile();
    expect((await ready())[0]).toContain(
      'Stalled=True/UpstreamNotFound: could not find upstream package revision blueprints/web with revision 7',
    );
    expect(await variants()).toEqual([]);
  });

  test('beyond maxTargets nothing is done', async () => {
    await create([{ repositories: [{ name: 'edge', packageNames: ['a', 'b', 'c'] }] }], { maxTargets: 2 });
    await reconcile();
    expect((await ready())[1]).toBe(
      'Ready=False/TooManyTargets: the set has 3 targets, spec.maxTargets permits 2; nothing was changed: raise it, or select fewer',
    );
    expect(await variants()).toEqual([]);
  });
});

test('names that would be the same, too long or taken have a hash, and stay the same', async () => {
  await bench.world.client.create(packageVariantKind, {
    metadata: { name: 'fleet-edge-taken' },
    spec: { upstream: UPSTREAM, downstream: { repo: 'other', package: 'x' } },
  });
  const packageNames = ['b', 'taken', 'x'.repeat(80)];
  await create([
    {
      repositories: [
        { name: 'edge', packageNames },
        { name: 'edge-b', packageNames: ['c'] },
        { name: 'edge', packageNames: ['b-c'] },
      ],
    },
  ]);
  await reconcile();
  const names = await downstreams();
  expect(names).toContain('fleet-edge-b: edge/b');
  expect(names.filter((name) => /^fleet-edge-b-c(-[0-9a-f]{8})?: /.test(name))).toHaveLength(2);
  expect(names).toContainEqual(expect.stringMatching(/^fleet-edge-taken-[0-9a-f]{8}: edge\/taken$/));
  for (const { metadata } of await variants()) expect(metadata.name.length).toBeLessThanOrEqual(63);
  await reconcile();
  expect(await downstreams()).toEqual(names);
});

test('of two sets that claim one downstream package, the second reports the variant of the first until that is gone', async () => {
  await create([{ repositories: [{ name: 'edge' }] }]);
  await reconcile();
  await create([{ repositories: [{ name: 'edge', packageNames: ['web', 'api'] }] }], {}, 'second');
  await reconcile('second');
  expect(await downstreams()).toEqual(['fleet-edge-web: edge/web', 'second-edge-api: edge/api']);
  expect((await ready('second'))[1]).toBe(
    'Ready=False/DownstreamClaimed: spec.targets[0]: downstream package edge/web belongs to PackageVariant fleet-edge-web of PackageVariantSet fleet',
  );
  await change({ targets: [{ repositories: [{ name: 'edge', packageNames: ['other'] }] }] });
  await reconcile();
  await reconcile('second');
  expect(await downstreams()).toEqual([
    'fleet-edge-other: edge/other',
    'second-edge-api: edge/api',
    'second-edge-web: edge/web',
  ]);
});

test('each write may fail, before or after it took effect: another attempt completes it', async () => {
  const { world } = bench;
  const failing = (client: Client, counter: { left: number }, after: boolean): Client =>
    new Proxy(client, {
      get: (object, property) => {
        const value = Reflect.get(object, property) as unknown;
        if (property === 'as') return () => failing(client, counter, after);
        if (typeof value !== 'function') return value;
        if (!['create', 'update', 'delete', 'updateStatus'].includes(String(property))) return value.bind(object);
        return async (...request: unknown[]) => {
          if (counter.left-- !== 0) return value.apply(object, request);
          if (after) await value.apply(object, request);
          throw new SluiceError('Unavailable', 'killed');
        };
      },
    });
  await create([{ repositories: [{ name: 'edge', packageNames: ['a', 'b'] }] }]);
  const steps = [
    ['c', 'd'],
    ['b', 'e'],
  ];
  for (const after of [false, true])
    for (let write = 0; write < 5; write += 1)
      for (const packageNames of steps) {
        const template = { labels: { step: `${after}${write}` } };
        await change({
          targets: [{ repositories: [{ name: 'edge', packageNames: [...packageNames, 'a'] }], template }],
        });
        await expect(controllerOn({ client: failing(world.client, { left: write }, after) })()).rejects.toThrow(
          'killed',
        );
        await reconcile();
        const kept = (await variants()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        expect(kept.map(({ spec }) => spec.downstream.package).sort()).toEqual([...packageNames, 'a'].sort());
        expect(new Set(kept.map(({ spec }) => spec.labels?.step))).toEqual(new Set([`${after}${write}`]));
      }
});

test('under a manager: objects become drafts by events alone', async () => {
  const { client, store, clock, registry, manager } = bench.world;
  manager.addController(packageVariantSetController({ client, store, clock, kinds: registry }));
  manager.addController(packageVariantController({ client, store, clock, kinds: registry }));
  await manager.start();
  await create([
    {
      objectSelector: { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type: 'cluster' } },
      template: { downstream: { repo: 'edge', packageExpr: "'web-' + target.name" } },
    },
  ]);
  await manager.idle();
  for (const name of ['one', 'two']) await map(name, { type: 'cluster' });
  await manager.idle();
  expect(bench.downstream('web-one')).toEqual(['packagevariant-1 Draft']);
  expect(bench.downstream('web-two')).toEqual(['packagevariant-1 Draft']);
  await client.patch(configMapKind, { namespace: 'default', name: 'two' }, { metadata: { labels: { type: null } } });
  await manager.idle();
  expect(bench.downstream('web-two')).toEqual([]);
  expect(await downstreams()).toEqual(['fleet-edge-web-one: edge/web-one']);
  await client.delete(packageVariantKind, { namespace: 'default', name: 'fleet-edge-web-one' });
  await manager.idle();
  expect(bench.downstream('web-one')).toEqual(['packagevariant-1 Draft']);
});

test('an event wakes only the sets that it concerns', async () => {
  const { store, clock, registry, manager } = bench.world;
  const reconciled: string[] = [];
  const counting = (client: Client): Client =>
    new Proxy(client, {
      get: (object, property) => {
        if (property === 'as') return (...as: Parameters<Client['as']>) => counting(object.as(...as));
        const value = Reflect.get(object, property) as unknown;
        if (property !== 'find' || typeof value !== 'function')
          return typeof value === 'function' ? value.bind(object) : value;
        return (...request: Parameters<Client['find']>) => {
          if (request[0].kind === packageVariantSetKind.kind) reconciled.push(request[1].name);
          return value.apply(object, request);
        };
      },
    });
  const { client } = bench.world;
  manager.addController(packageVariantSetController({ client: counting(client), store, clock, kinds: registry }));
  await manager.start();
  const select = (type: string) => ({ objectSelector: { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type } } });
  await create([select('a')], {}, 'a');
  await create([select('b')], {}, 'b');
  const other = await bench.world.draft('blueprints/api/w1');
  await bench.world.publish(other.name);
  await create([{ repositories: [{ name: 'edge' }] }], { upstream: { repo: 'blueprints', package: 'api' } }, 'api');
  const after = async (act: () => Promise<unknown>) => {
    await manager.idle();
    reconciled.length = 0;
    await act();
    await manager.idle();
    return [...new Set(reconciled)].sort();
  };
  const key = (name: string) => ({ namespace: 'default', name });
  expect(await after(() => map('site', { type: 'a' }))).toEqual(['a']);
  expect(await after(() => client.patch(configMapKind, key('site'), { data: { x: 'y' } }))).toEqual([]);
  expect(await after(() => client.patch(configMapKind, key('site'), { metadata: { labels: { type: 'b' } } }))).toEqual([
    'a',
    'b',
  ]);
  expect(await after(() => map('unrelated'))).toEqual([]);
  expect(await after(() => bench.publishBlueprint({ 'a.yaml': 'a: 1\n' }))).toEqual(['a', 'b']);
  expect(await after(() => bench.world.draft('edge/unrelated/w1'))).toEqual([]);
  const [variant] = (await variants()).filter(({ metadata }) => metadata.name.startsWith('api'));
  expect(await after(() => client.delete(packageVariantKind, key(variant?.metadata.name ?? '')))).toEqual(['api']);
});
