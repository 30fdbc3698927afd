import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { fixture } from '../../test/support/fixture.ts';
import { type VariantBench, variantBench } from '../../test/support/variant-bench.ts';
import { packageVariantSetController } from './package-variant-set-controller.ts';

const UPSTREAM = { repo: 'blueprints', package: 'web' };

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const reconcile = (name = 'fleet') => {
  const { client, store, clock, registry } = bench.world;
  return packageVariantSetController({ client, store, clock, kinds: registry }).reconcile(
    { namespace: 'default', name },
    { signal: new AbortController().signal, failures: 0 },
  );
};
const create = (targets: readonly object[], more: object = {}, name = 'fleet') =>
  bench.world.client.create(packageVariantSetKind, {
    metadata: { name },
    spec: { upstream: UPSTREAM, targets: targets as never, ...more },
  });
const change = (spec: object, name = 'fleet') =>
  bench.world.client.patch(packageVariantSetKind, { namespace: 'default', name }, { spec } as never);
const variants = async () => (await bench.world.client.list(packageVariantKind, { namespace: 'default' })).items;
const ready = async (name = 'fleet') => {
  const { status } = await bench.world.client.get(packageVariantSetKind, { namespace: 'default', name });
  const texts = (status?.conditions ?? []).map(
    ({ type, status: value, reason, message }) => `${type}=${value}/${reason}: ${message}`,
  );
  return texts;
};
const map = (name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}) =>
  bench.world.client.create(configMapKind, { metadata: { name, labels, annotations } });

describe('templates', () => {
  const objectSelector = { apiVersion: 'v1', kind: 'ConfigMap', matchLabels: { type: 'cluster' } };

  test('fill all fields of the variants, with every variable', async () => {
    await map('west-1', { type: 'cluster', region: 'us-west' }, { site: 'd7' });
    await bench.world.client.patch(
      repositoryKind,
      { namespace: 'default', name: 'edge' },
      { metadata: { labels: { tier: 'gold' } } },
    );
    await create([
      {
        objectSelector,
        template: {
          downstream: {
            repoExpr: "target.name.startsWith('west') ? 'edge' : repoDefault",
            packageExpr: "packageDefault + '-' + target.name",
          },
          adoptionPolicy: 'adoptExisting',
          deletionPolicy: 'orphan',
          labels: { a: 'fixed', tier: 'none' },
          labelExprs: [{ key: 'tier', valueExpr: 'repository.labels.tier' }],
          annotations: { b: 'c' },
          annotationExprs: [{ keyExpr: "'site.' + target.annotations.site", value: 'yes' }],
          packageContext: {
            data: { fixed: '1' },
            dataExprs: [
              { key: 'region', valueExpr: 'target.labels.region' },
              { key: 'from', valueExpr: 'upstream.name' },
            ],
            removeKeys: ['z'],
            removeKeyExprs: ["'y-' + target.namespace", "'z'"],
          },
          pipeline: {
            mutators: [
              {
                image: 'set-labels:v0.2',
                configMap: { x: 'y' },
                configMapExprs: [{ key: 'cluster', valueExpr: 'target.name' }],
              },
            ],
            validators: [{ image: 'kubeconform:v0.1' }],
          },
          injectors: [{ kind: 'ConfigMap', nameExpr: 'target.name' }, { name: 'fixed' }],
        },
      },
    ]);
    await reconcile();
    expect((await ready())[1]).toContain('Ready=True');
    const [variant] = await variants();
    expect(variant?.spec).toEqual({
      upstream: UPSTREAM,
      downstream: { repo: 'edge', package: 'web-west-1' },
      adoptionPolicy: 'adoptExisting',
      deletionPolicy: 'orphan',
      labels: { a: 'fixed', tier: 'gold' },
      annotations: { b: 'c', 'site.d7': 'yes' },
      packageContext: {
        data: { fixed: '1', region: 'us-west', from: 'blueprints.web.w1' },
        removeKeys: ['y-default', 'z'],
      },
      pipeline: {
        mutators: [{ image: 'set-labels:v0.2', configMap: { x: 'y', cluster: 'west-1' } }],
        validators: [{ image: 'kubeconform:v0.1' }],
      },
      injectors: [{ kind: 'ConfigMap', name: 'west-1' }, { name: 'fixed' }],
    });
  });

  test('that change update the variants, and delete and create none', async () => {
    const repositories = [{ name: 'edge', packageNames: ['a', 'b'] }];
    await create([{ repositories }]);
    await reconcile();
    const before = (await variants()).map(({ metadata }) => metadata.uid);
    await change({ targets: [{ repositories, template: { labelExprs: [{ key: 'in', valueExpr: 'target.repo' }] } }] });
    await reconcile();
    const after = await variants();
    expect(after.map(({ metadata }) => metadata.uid)).toEqual(before);
    expect(after.map(({ spec }) => spec.labels)).toEqual([{ in: 'edge' }, { in: 'edge' }]);
  });

  test('that fail for one target are reported with the field; the others are carried out, and nothing is deleted', async () => {
    await map('edge', { type: 'cluster', region: 'us' });
    await create([
      { objectSelector, template: { labelExprs: [{ key: 'region', valueExpr: 'target.labels.region' }] } },
    ]);
    await reconcile();
    await map('blueprints', { type: 'cluster' });
    await bench.world.client.patch(
      configMapKind,
      { namespace: 'default', name: 'edge' },
      { metadata: { labels: { region: 'eu' } } },
    );
    await reconcile();
    expect((await variants()).map(({ spec }) => spec.labels)).toEqual([{ region: 'eu' }]);
    expect((await ready())[1]).toMatch(
      /^Ready=False\/UnexpectedError: spec\.targets\[0\] \(ConfigMap blueprints\): template\.labelExprs\[0\]\.valueExpr: expression "target\.labels\.region", line 1, column \d+: .*; no variant is deleted meanwhile$/,
    );
    await bench.world.client.delete(configMapKind, { namespace: 'default', name: 'edge' });
    await reconcile();
    expect(await variants()).toHaveLength(1);
    await bench.world.client.delete(configMapKind, { namespace: 'default', name: 'blueprints' });
    await reconcile();
    expect(await variants()).toEqual([]);
  });

  test('that yield no text, an unknown repository, a wrong variant or one package twice are reported', async () => {
    const repositories = [{ name: 'edge' }];
    for (const [targets, message] of [
      [
        [{ repositories, template: { downstream: { packageExpr: "target.repo == 'edge' ? dyn(1) : 'a'" } } }],
        'gives number, expected a text',
      ],
      [
        [{ repositories: [{ name: 'gone' }], template: {} }],
        'spec.targets[0] (Repository gone): repository "gone" could not be loaded; register it',
      ],
      [
        [{ repositories: [{ name: 'egde' }], template: {} }],
        'repository "egde" could not be loaded; register it; did you mean edge?',
      ],
      [
        [{ repositories, template: { packageContext: { dataExprs: [{ keyExpr: "'na' + 'me'", value: 'x' }] } } }],
        'must not contain the key "name"',
      ],
      [
        [{ repositories }, { repositories }],
        'spec.targets[1] (Repository edge): downstream package edge/web is that of spec.targets[0] (Repository edge) too',
      ],
    ] as const) {
      const name = `s${message.length}`;
      await create(targets, {}, name);
      await reconcile(name);
      expect((await ready(name))[1]).toContain(message);
    }
  });

  test('that cost too much are refused, or end the work on the set, and other work goes on meanwhile', async () => {
    const numbers = Array.from({ length: 20 }, (_, index) => index).join(',');
    const bomb = `string(size([${numbers}].map(a, [${numbers}].map(b, a + b))))`;
    const some = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ key: `k${index}`, valueExpr: bomb }));
    const repositories = [
      { name: 'edge', packageNames: Array.from({ length: 1000 }, (_, index) => `package-${index}`) },
    ];
    await create([{ repositories, template: { labelExprs: some(10) } }]);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 5);
    await reconcile();
    clearInterval(timer);
    expect((await ready())[0]).toBe(
      'Stalled=True/TooExpensive: the expressions of the templates cost more than 2000 ms for 1000 targets; nothing was changed: simplify them, or select fewer targets',
    );
    expect(await variants()).toEqual([]);
    // Only between two targets, each of which takes some milliseconds here.
    expect(turns).toBeGreaterThan(5);
    const nested = `[${numbers}].all(a, [${numbers}].all(b, [${numbers}].all(c, a + b + c >= 0))) ? 'a' : 'b'`;
    const refused = create(
      [{ repositories, template: { labelExprs: [{ key: 'a', valueExpr: nested }] } }],
      {},
      'other',
    );
    await expect(refused).rejects.toThrow('costs more than 1000 rounds or 100 ms');
  });
});
