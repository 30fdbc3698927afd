import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { applyJsonPatch } from '../../src/resource/patch/json-patch.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { describeVariant } from '../package-variant/describe-variant.ts';
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

  test('with expressions that today have wrong types do nothing and report it, until the set is changed', async () => {
    await create([{ repositories: [{ name: 'edge' }] }]);
    await reconcile();
    const { registry, client } = bench.world;
    const key = { namespace: 'default', name: 'fleet' };
    const set = await client.get(packageVariantSetKind, key);
    const repositories = [{ name: 'west' }];
    const targets = [{ repositories, template: { downstream: { packageExpr: 'target.package + 1' } } }];
    const { resourceVersion: _version, ...metadata } = set.metadata;
    // As if it had been written before there was the rule.
    await registry
      .storage(packageVariantSetKind)
      .update({ actor: client.actor, face: 'cli' }, { ...set, metadata, spec: { ...set.spec, targets } });
    await reconcile();
    expect(await ready()).toEqual([
      expect.stringMatching(
        /^Stalled=True\/ValidationError: spec\.targets\[0\]\.template\.downstream\.packageExpr: Invalid value: .*no matching overload/,
      ),
      expect.stringMatching(/^Ready=False\/ValidationError: /),
    ]);
    expect(await downstreams()).toEqual(['fleet-edge-web: edge/web']);
    await change({ targets: [{ repositories }] });
    await reconcile();
    expect(await ready()).toEqual([
      'Stalled=False/Valid: all validation checks passed',
      'Ready=True/Reconciled: package variants successfully reconciled',
    ]);
    expect(await downstreams()).toEqual(['fleet-west-web: west/web']);
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
    for (const [apiVersion, kind, next] of [
      ['x.dev/v1', 'Site', 'define the kind'],
      ['v1', 'Namespace', 'define the kind'],
      ['v1', 'ConfigMaps', 'did you mean v1.ConfigMap? Otherwise define the kind'],
      ['core/v1', 'ConfigMap', 'did you mean v1.ConfigMap? Otherwise define the kind'],
      [
        'infra.nephio.org/v1alpha1',
        'WorkloadClusters',
        'did you mean infra.nephio.org/v1alpha1.WorkloadCluster? Otherwise define the kind',
      ],
    ] as const) {
      await change({ targets: [{ objectSelector: { apiVersion, kind } }] });
      await reconcile();
      expect((await ready())[0]).toBe(
        `Stalled=True/NoMatchingTargets: spec.targets[0]: no namespaced objects of type ${apiVersion}.${kind} are served here; ${next}`,
      );
    }
    expect(await downstreams()).toEqual(['fleet-edge-web: edge/web']);
  });

  test('never are Secrets, whose annotations can repeat their data', async () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"password":"aHVudGVyMg=="}}' };
    await bench.world.client.create(secretKind, { metadata: { name: 'db', annotations } });
    const valueExpr = "target.annotations['kubectl.kubernetes.io/last-applied-configuration']";
    const template = { downstream: { repo: 'edge' }, packageContext: { dataExprs: [{ key: 'x', valueExpr }] } };
    await create([{ objectSelector: { apiVersion: 'v1', kind: 'Secret' }, template }]);
    await reconcile();
    expect(await variants()).toEqual([]);
    expect((await ready())[0]).toBe(
      'Stalled=True/NoMatchingTargets: spec.targets[0]: Secret objects cannot be selected, since users who write sets need not be allowed to read them; select ConfigMaps',
    );
  });

  test('that select nothing are reported', async () => {
    const objectSelector = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { site: 'edge' } };
    await create([{ repositories: [{ name: 'edge' }] }, { objectSelector }, { repositorySelector: {} }]);
    await bench.world.client.delete(repositoryKind, { namespace: 'default', name: 'blueprints' });
    await bench.world.client.delete(repositoryKind, { namespace: 'default', name: 'edge' });
    await reconcile();
    expect((await ready())[1]).toBe(
      'Ready=True/Reconciled: package variants successfully reconciled; spec.targets[1]: 0 ConfigMap objects match, spec.targets[2]: 0 Repository objects match',
    );
  });

  test('with one problem are listed together, each problem once', async () => {
    for (let site = 0; site < 8; site += 1) await map(`site-${site}`, { type: 'cluster' });
    const template = { downstream: { repo: 'edge', packageExpr: "target.name + '/Web'" }, labelExprs: [] };
    const objectSelector = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type: 'cluster' } };
    await create([
      { objectSelector, template: { ...template, packageContext: { removeKeyExprs: ['target.labels.region'] } } },
    ]);
    await reconcile();
    const sites = 'ConfigMap site-0, ConfigMap site-1, ConfigMap site-2, ConfigMap site-3, ConfigMap site-4 and 3 more';
    expect((await ready())[1]).toBe(
      `Ready=False/UnexpectedError: spec.targets[0] (${sites}): template.packageContext.removeKeyExprs[0]: expression "target.labels.region", line 1, column 14: field not found: region; no variant is deleted meanwhile`,
    );
    await change({ targets: [{ objectSelector, template }] });
    await reconcile();
    expect((await ready())[1]).toContain(
      'spec.targets[0] (ConfigMap site-0): the variant is invalid: spec.downstream.package: Invalid value: "site-0/Web": segment "Web" must be lower case letters',
    );
    expect((await ready())[1]).toContain('and 3 more problems');
    expect(await variants()).toEqual([]);
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
  const packageNames = ['b', 'taken', 'x'.repeat(63)];
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
    'Ready=False/DownstreamClaimed: spec.targets[0] (Repository edge): downstream package edge/web belongs to PackageVariant fleet-edge-web of PackageVariantSet fleet',
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

test('a repository that changes while a template reads it for the first time counts as it is then', async () => {
  const { client } = bench.world;
  let lists = 0;
  const changing = (inner: Client): Client =>
    new Proxy(inner, {
      get: (object, property) => {
        const value = Reflect.get(object, property) as unknown;
        if (property === 'as') return () => changing(object);
        if (typeof value !== 'function') return value;
        if (property !== 'list') return value.bind(object);
        return async (...request: Parameters<Client['list']>) => {
          const result = await value.apply(object, request);
          if (request[0].kind === repositoryKind.kind && lists++ === 0)
            await client.patch(
              repositoryKind,
              { namespace: 'default', name: 'edge' },
              { metadata: { labels: { region: 'eu' } } },
            );
          return result;
        };
      },
    });
  const labelExprs = [
    { key: 'region', valueExpr: "has(repository.labels.region) ? repository.labels.region : 'none'" },
  ];
  await create([{ repositories: [{ name: 'edge' }], template: { labelExprs } }]);
  const run = controllerOn({ client: changing(client) });
  await run();
  expect((await variants()).map(({ spec }) => spec.labels)).toEqual([{ region: 'eu' }]);
  // From then on events report changes.
  lists = 0;
  await run();
  expect(lists).toBe(1);
});

test('variants that fail make their set not ready, and it becomes ready again with them', async () => {
  const { client, store, clock, registry, manager } = bench.world;
  const controllers = [packageVariantSetController, packageVariantController];
  for (const controller of controllers) manager.addController(controller({ client, store, clock, kinds: registry }));
  await manager.start();
  await create([{ repositories: [{ name: 'edge', packageNames: ['a', 'b'] }, { name: 'gone' }] }]);
  const settle = async () => {
    // The counts are written a second after a change.
    await manager.idle();
    (clock as ManualClock).advance(1000);
    await manager.idle();
  };
  await settle();
  expect((await ready())[1]).toBe(
    'Ready=False/VariantsFailing: 1 of 3 variants fail, such as fleet-gone-web: repository gone is not registered in namespace default; see "sluice repo get"',
  );
  const { status } = await client.get(packageVariantSetKind, { namespace: 'default', name: 'fleet' });
  expect(status?.variants).toEqual({ total: 3, ready: 2, waiting: 0, failing: 1 });
  await bench.world.register('gone');
  await settle();
  expect((await ready())[1]).toBe('Ready=True/Reconciled: package variants successfully reconciled');
});

test('a target that is selected again adopts its package by the steps that are reported', async () => {
  const { client, store, clock, registry, manager, publish } = bench.world;
  const controllers = [packageVariantSetController, packageVariantController];
  for (const controller of controllers) manager.addController(controller({ client, store, clock, kinds: registry }));
  await manager.start();
  const [name, path] = ['fleet', 'east'];
  const labels = { set: name };
  const remove = async () => client.delete(configMapKind, { namespace: 'default', name: path });
  const select = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: labels };
  const downstream = { repo: 'edge', packageExpr: 'target.name' };
  const targets = [{ objectSelector: select, template: { downstream } }];
  await map(path, labels);
  await create(targets, {}, name);
  await manager.idle();
  const revision = `edge.${path}.packagevariant-1`;
  await publish(revision);
  await remove();
  await manager.idle();
  await map(path, labels);
  await manager.idle();
  const key = { namespace: 'default', name };
  const explained = async () => {
    const set = await client.get(packageVariantSetKind, key);
    const one = (await variants()).find(({ spec }) => spec.downstream.package === path);
    if (one === undefined) throw new Error('there is no variant');
    return describeVariant(one, set);
  };
  const { commands = [], reasons, next } = await explained();
  expect(reasons.join()).toContain(`${revision} is proposed for deletion; to keep it, reject the deletion`);
  expect(reasons.join()).toContain(`set template.adoptionPolicy of its target in PackageVariantSet ${name}`);
  expect(next).toEqual([]);
  const [reject, patch = ''] = commands;
  expect(reject).toBe(`sluice rpkg reject ${revision}`);
  const [, body = ''] = /^kubectl -n default patch packagevariantset fleet --type json -p '(.*)'$/.exec(patch) ?? [];
  await store.update(`default/${revision}`, { action: 'reject' }, ANNA);
  const set = await client.get(packageVariantSetKind, key);
  await client.update(packageVariantSetKind, applyJsonPatch(set, JSON.parse(body)) as typeof set);
  await manager.idle();
  expect((await explained()).state).toBe('up to date');
  expect(bench.downstream(path)).toEqual(['packagevariant-1 Published v1']);
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
